#include "conninfo.hpp"

namespace uidgen::pg {
namespace {

constexpr char setting_name[] = "uidgen.registry";

emit_log_hook_type next_emit_log_hook = nullptr;

// A connection string in the place of a database's name may contain a password.
bool is_plain(const char *value) { return strpbrk(value, "=@:") == nullptr; }

// The name of another setting may begin with that of this one.
bool names_setting(const char *message) {
    const char *found = message != nullptr ? strstr(message, setting_name) : nullptr;
    return found != nullptr && found[sizeof(setting_name) - 1] != '_';
}

// A hook may keep a message out of the log, but not change it. So another message takes its place.
void hide_value(ErrorData *error) {
    static bool in_hook = false;
    const bool is_report_of_change =
        error->message_id != nullptr && strcmp(error->message_id, "parameter \"%s\" changed to \"%s\"") == 0;
    if (!in_hook && is_report_of_change && names_setting(error->message)) {
        in_hook = true;
        error->output_to_server = false;
        ereport(LOG, (errmsg("parameter \"%s\" changed", setting_name)));
        in_hook = false;
    }
    if (next_emit_log_hook != nullptr)
        next_emit_log_hook(error);
}

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

void conninfo_keep_out_of_log() {
    next_emit_log_hook = emit_log_hook;
    emit_log_hook = hide_value;
}

} // namespace uidgen::pg
