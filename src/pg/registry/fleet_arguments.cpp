#include "fleet_arguments.hpp"

namespace uidgen::pg {
namespace {

constexpr int32_t protocol_version = 1;
constexpr int arguments_of_held = 7;
constexpr int first_of_layout = 18;

constexpr int longest_text = 1024;

const char *name_of_argument(const Arguments *a, int number) {
    char **names = nullptr;
    Oid *types = nullptr;
    char *modes = nullptr;
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(a->fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for function %u", a->fcinfo->flinfo->fn_oid);
    get_func_arg_info(tuple, &types, &names, &modes);
    ReleaseSysCache(tuple);
    return names == nullptr ? "" : names[number];
}

// Of the argument that was read last.
[[noreturn]] void report_argument(const Arguments *a, const char *value) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for argument \"%s\" of %s: %s", name_of_argument(a, a->next - 1),
                           get_func_name(a->fcinfo->flinfo->fn_oid), value)));
}

bool next_is_null(const Arguments *a) { return a->fcinfo->args[a->next].isnull; }

Datum next_datum(Arguments *a) {
    if (next_is_null(a))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("argument \"%s\" of %s must not be null", name_of_argument(a, a->next),
                               get_func_name(a->fcinfo->flinfo->fn_oid))));
    return a->fcinfo->args[a->next++].value;
}

int64_t in_bounds(const Arguments *a, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
        report_argument(a, psprintf(INT64_FORMAT, value));
    return value;
}

int32_t next_integer(Arguments *a, int64_t least, int64_t most) {
    const int32_t value = DatumGetInt32(next_datum(a));
    return static_cast<int32_t>(in_bounds(a, value, least, most));
}

bool next_boolean(Arguments *a) { return DatumGetBool(next_datum(a)); }

uint64_t next_random(Arguments *a) { return static_cast<uint64_t>(next_bigint(a, 1, PG_INT64_MAX)); }

core::Layout next_layout(Arguments *a) {
    core::Layout layout = {};
    layout.epoch_us = next_bigint(a, 0, core::max_instant_us);
    layout.tick_us = next_bigint(a, 1, core::max_tick_us);
    layout.time_bits = next_integer(a, 1, core::max_time_bits);
    layout.datacenter_bits = next_integer(a, 0, core::max_field_bits);
    layout.worker_bits = next_integer(a, 0, core::max_field_bits);
    layout.sequence_bits = next_integer(a, 0, core::max_field_bits);
    layout.sequence_first = next_boolean(a);
    layout.backup = next_boolean(a);
    if (core::check(layout) != core::LayoutFault::none)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid layout in a call of uid_fleet_call"),
                        errdetail("The widths do not fit an id, or the layout ends too late.")));
    return layout;
}

void next_former(Arguments *a, core::Ask *ask) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    if (next_is_null(a)) {
        a->next++;
        return;
    }
    ArrayType *array = DatumGetArrayTypeP(next_datum(a));
    deconstruct_array(array, INT8OID, 8, true, TYPALIGN_DOUBLE, &values, &nulls, &count);
    if (count > static_cast<int>(core::most_former) || ARR_NDIM(array) > 1)
        report_argument(a, "too many values");
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            report_argument(a, "null");
        ask->former[ask->former_count++] =
            static_cast<uint64_t>(in_bounds(a, DatumGetInt64(values[i]), 1, PG_INT64_MAX));
    }
}

void next_held(Arguments *a, const core::Layout &layout, core::Ask *ask) {
    const int64_t end = core::largest(layout.time_bits) + 1;
    core::Grant &held = ask->held;
    ask->holds = !next_is_null(a);
    if (!ask->holds) {
        a->next += arguments_of_held;
        return;
    }
    held.node = next_bigint(a, 0, core::largest(core::drawn_node_bits(layout)));
    held.from = next_bigint(a, 0, end);
    held.until = next_bigint(a, held.from, end);
    held.line = next_random(a);
    // The grant came with an answer, and the latest answer is this one or a later one.
    held.term = next_bigint(a, 1, ask->term);
    held.serial = next_bigint(a, 1, PG_INT64_MAX);
    held.seal = next_bigint_or_zero(a, PG_INT64_MAX);
}

WorkerPolicy next_policy(Arguments *a, const char **name) {
    const char *const policies[] = {"disposable", "sticky", "static"};
    *name = next_text(a);
    for (int i = 0; i < static_cast<int>(lengthof(policies)); i++)
        if (strcmp(*name, policies[i]) == 0)
            return static_cast<WorkerPolicy>(i);
    report_argument(a, psprintf("\"%s\"", *name));
}

// What kind of node it asks for. A worker number counts for static alone, a datacenter id in a layout that has the
// field.
void next_wish(Arguments *a, Call *call) {
    const core::Layout &layout = call->layout;
    call->policy = next_policy(a, &call->holder.policy);
    if (call->policy == WorkerPolicy::fixed)
        call->worker_number = next_integer(a, 0, core::largest(core::drawn_worker_bits(layout)));
    else
        a->next++;
    call->datacenter_id = any_datacenter;
    if (!next_is_null(a) && layout.datacenter_bits > 0)
        call->datacenter_id = next_integer(a, 0, core::largest(layout.datacenter_bits));
    else
        a->next++;
}

// The node that it used without a registry.
void next_use_before(Arguments *a, Call *call) {
    const core::Layout &layout = call->layout;
    call->former_node = no_node;
    if (next_is_null(a)) {
        a->next += 2;
        return;
    }
    call->former_node = next_bigint(a, 0, core::largest(core::drawn_node_bits(layout)));
    call->former_until = next_bigint(a, 0, core::largest(layout.time_bits) + 1);
}

void next_server(Arguments *a, Holder *holder) {
    holder->host = next_text(a);
    holder->port = next_text(a);
    holder->system_identifier = next_bigint(a, PG_INT64_MIN, PG_INT64_MAX);
    holder->timeline = next_integer(a, 1, PG_INT32_MAX);
    holder->database = next_text(a);
    holder->generator = next_text(a);
    holder->version = next_text(a);
}

} // namespace

void check_protocol(Arguments *a, int32_t spoken) {
    const int32_t asked = DatumGetInt32(next_datum(a));
    if (asked != spoken)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("protocol version %d of the member is not supported by the registry", asked),
                        errdetail("The registry speaks version %d.", spoken),
                        errhint("Upgrade the registry first, then the members.")));
}

int64_t next_bigint(Arguments *a, int64_t least, int64_t most) {
    const int64_t value = DatumGetInt64(next_datum(a));
    return in_bounds(a, value, least, most);
}

int64_t next_bigint_or_zero(Arguments *a, int64_t most) {
    if (!next_is_null(a))
        return next_bigint(a, 0, most);
    a->next++;
    return 0;
}

const char *next_text(Arguments *a) {
    const char *value = text_to_cstring(DatumGetTextPP(next_datum(a)));
    if (strlen(value) > longest_text)
        report_argument(a, "too long");
    return value;
}

Call read_call(FunctionCallInfo fcinfo) {
    Arguments a = {fcinfo, 0};
    Arguments of_layout = {fcinfo, first_of_layout};
    Call call = {};
    core::Ask &ask = call.ask;
    check_protocol(&a, protocol_version);
    call.layout = next_layout(&of_layout); // the others are judged by it
    ask.incarnation = next_random(&a);
    next_former(&a, &ask);
    ask.fleet = static_cast<uint64_t>(next_bigint_or_zero(&a, PG_INT64_MAX));
    ask.term = next_bigint_or_zero(&a, core::largest_term);
    ask.serial = next_bigint_or_zero(&a, PG_INT64_MAX);
    ask.seal = next_bigint_or_zero(&a, PG_INT64_MAX);
    next_held(&a, call.layout, &ask);
    ask.clock_us = next_bigint(&a, -1, core::max_instant_us);
    ask.lowest = next_bigint(&a, 0, core::largest(call.layout.time_bits));
    ask.length = next_bigint(&a, 1, PG_INT64_MAX);
    call.preset = next_is_null(&a) ? "custom" : next_text(&a);
    a.next = of_layout.next;
    next_wish(&a, &call);
    next_use_before(&a, &call);
    next_server(&a, &call.holder);
    return call;
}

} // namespace uidgen::pg
