#include "registry_call.hpp"

#include "base/identity.hpp"

namespace uidgen::pg {

void put(CallParameters *p, const char *value) {
    Assert(p->count < static_cast<int>(lengthof(p->values)));
    p->values[p->count++] = value;
}

void put(CallParameters *p, int64_t value) { put(p, psprintf(INT64_FORMAT, value)); }
void put(CallParameters *p, uint64_t value) { put(p, static_cast<int64_t>(value)); }
void put(CallParameters *p, int32_t value) { put(p, static_cast<int64_t>(value)); }
void put(CallParameters *p, bool value) { put(p, value ? "t" : "f"); }

void put_if(CallParameters *p, bool known, int64_t value) {
    if (known)
        put(p, value);
    else
        put(p, static_cast<const char *>(nullptr));
}

void put_name(CallParameters *p, const char *name) {
    const int length = static_cast<int>(strlen(name));
    char *copy = pstrdup(name);
    if (!connection_takes_utf8() || pg_encoding_verifymbstr(PG_UTF8, name, length) != length)
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put(p, copy);
}

void put_address(CallParameters *p) {
    char host[256];
    (void)read_host_name(host, sizeof(host));
    put_name(p, host);
    put(p, PostPortNumber);
}

PGresult *call_registry(const char *procedure, const CallParameters &p, GrantError *error) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "CALL %s.%s(", connection_schema(), procedure);
    for (int i = 1; i <= p.count; i++)
        appendStringInfo(&text, "%s$%d", i > 1 ? ", " : "", i);
    appendStringInfoChar(&text, ')');
    return connection_query(text.data, p.count, p.values, error);
}

const char *answer_text(const PGresult *result, const char *column) {
    const int field = PQfnumber(result, column);
    return field >= 0 && PQgetisnull(result, 0, field) == 0 ? PQgetvalue(result, 0, field) : nullptr;
}

bool answer_number(const PGresult *result, const char *column, int64_t *number) {
    const char *text = answer_text(result, column);
    char *end = nullptr;
    errno = 0;
    *number = text != nullptr ? strtoll(text, &end, 10) : 0;
    return text != nullptr && end != text && *end == '\0' && errno == 0;
}

void set_refusal(GrantError *error, const PGresult *result, const char *refusal) {
    const char *message = answer_text(result, "message");
    const char *hint = answer_text(result, "hint");
    set_error(error, message != nullptr ? message : refusal, hint != nullptr ? hint : "");
}

void set_incomplete(GrantError *error) {
    set_error(error, "the registry's answer is incomplete", "Update uidgen on the registry before its members.");
}

} // namespace uidgen::pg
