#include "conninfo.hpp"

namespace uidgen::pg {
namespace {

constexpr char setting_name[] = "uidgen.registry";

// A connection string in the place of a database's name may contain a password.
bool is_plain(const char *value) { return strpbrk(value, "=@:") == nullptr; }

} // namespace

bool conninfo_check(char **value, void **, GucSource) {
    PQconninfoOption *options = PQconninfoParse(*value, nullptr);
    if (options == nullptr) {
        GUC_check_errcode(ERRCODE_INVALID_PARAMETER_VALUE);
        GUC_check_errmsg("invalid value for parameter \"%s\"", setting_name);
        GUC_check_errdetail("It is not a connection string that libpq can parse.");
        GUC_check_errhint("Use keywords and values, such as \"host=ids.example.com dbname=ids user=uid_fleet\", or a "
                          "URI. Quote a value that contains spaces.");
        return false;
    }
    PQconninfoFree(options);
    return true;
}

const char *conninfo_redacted(const char *conninfo) {
    const char *const shown[] = {"service", "host", "port", "dbname", "user"};
    StringInfoData text;
    initStringInfo(&text);
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    for (const char *keyword : shown)
        for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++)
            if (strcmp(option->keyword, keyword) == 0 && option->val != nullptr && option->val[0] != '\0')
                appendStringInfo(&text, "%s%s=%s", text.len > 0 ? " " : "", keyword,
                                 is_plain(option->val) ? option->val : "...");
    PQconninfoFree(options);
    return text.data;
}

} // namespace uidgen::pg
