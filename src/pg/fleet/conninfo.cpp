#include "conninfo.hpp"

namespace uidgen::pg {
namespace {

// A connection string in the place of a database's name may contain a password.
bool is_plain(const char *value) { return strpbrk(value, "=@:") == nullptr; }

} // namespace

bool conninfo_is_valid(const char *conninfo) {
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    PQconninfoFree(options);
    return options != nullptr;
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
