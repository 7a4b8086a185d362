#include "fleet_arguments.hpp"

namespace uidgen::pg {
namespace {

constexpr int32_t protocol_version = 1;

// In the order of the function's arguments.
enum Argument {
    arg_protocol,
    arg_incarnation,
    arg_former,
    arg_fleet,
    arg_term,
    arg_serial,
    arg_held_node,
    arg_held_from,
    arg_held_until,
    arg_held_line,
    arg_held_term,
    arg_held_serial,
    arg_clock_us,
    arg_lowest,
    arg_length,
    arg_preset,
    arg_epoch_us,
    arg_tick_us,
    arg_time_bits,
    arg_datacenter_bits,
    arg_worker_bits,
    arg_sequence_bits,
    arg_sequence_first,
    arg_backup_worker,
    arg_policy,
    arg_worker_number,
    arg_datacenter_id,
    arg_former_node,
    arg_former_until,
    arg_host,
    arg_port,
    arg_system_identifier,
    arg_timeline,
    arg_database,
    arg_generator,
    arg_version,
};

constexpr int longest_text = 1024;

const char *name_of_argument(FunctionCallInfo fcinfo, int number) {
    char **names = nullptr;
    Oid *types = nullptr;
    char *modes = nullptr;
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
    get_func_arg_info(tuple, &types, &names, &modes);
    ReleaseSysCache(tuple);
    return names == nullptr ? "" : names[number];
}

[[noreturn]] void report_argument(FunctionCallInfo fcinfo, int number, const char *value) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid value for argument \"%s\" of uid_fleet_call: %s",
                                                              name_of_argument(fcinfo, number), value)));
}

void check_not_null(FunctionCallInfo fcinfo, int number) {
    if (PG_ARGISNULL(number))
        ereport(ERROR,
                (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                 errmsg("argument \"%s\" of uid_fleet_call must not be null", name_of_argument(fcinfo, number))));
}

int64_t in_bounds(FunctionCallInfo fcinfo, int number, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
        report_argument(fcinfo, number, psprintf("%lld", static_cast<long long>(value)));
    return value;
}

int64_t bigint_argument(FunctionCallInfo fcinfo, int number, int64_t least, int64_t most) {
    check_not_null(fcinfo, number);
    return in_bounds(fcinfo, number, PG_GETARG_INT64(number), least, most);
}

int32_t integer_argument(FunctionCallInfo fcinfo, int number, int64_t least, int64_t most) {
    check_not_null(fcinfo, number);
    return static_cast<int32_t>(in_bounds(fcinfo, number, PG_GETARG_INT32(number), least, most));
}

bool boolean_argument(FunctionCallInfo fcinfo, int number) {
    check_not_null(fcinfo, number);
    return PG_GETARG_BOOL(number);
}

const char *text_argument(FunctionCallInfo fcinfo, int number) {
    check_not_null(fcinfo, number);
    const char *value = text_to_cstring(PG_GETARG_TEXT_PP(number));
    if (strlen(value) > longest_text)
        report_argument(fcinfo, number, "too long");
    return value;
}

int64_t known_or_zero(FunctionCallInfo fcinfo, int number, int64_t most) {
    return PG_ARGISNULL(number) ? 0 : bigint_argument(fcinfo, number, 0, most);
}

core::Layout read_layout(FunctionCallInfo fcinfo) {
    core::Layout layout = {};
    layout.epoch_us = bigint_argument(fcinfo, arg_epoch_us, 0, core::max_instant_us);
    layout.tick_us = bigint_argument(fcinfo, arg_tick_us, 1, core::max_tick_us);
    layout.time_bits = integer_argument(fcinfo, arg_time_bits, 1, core::max_time_bits);
    layout.datacenter_bits = integer_argument(fcinfo, arg_datacenter_bits, 0, core::max_field_bits);
    layout.worker_bits = integer_argument(fcinfo, arg_worker_bits, 0, core::max_field_bits);
    layout.sequence_bits = integer_argument(fcinfo, arg_sequence_bits, 0, core::max_field_bits);
    layout.sequence_first = boolean_argument(fcinfo, arg_sequence_first);
    layout.backup = boolean_argument(fcinfo, arg_backup_worker);
    if (core::check(layout) != core::LayoutFault::none)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid layout in a call of uid_fleet_call"),
                        errdetail("The widths do not fit an id, or the layout ends too late.")));
    return layout;
}

void read_former(FunctionCallInfo fcinfo, core::Ask *ask) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    if (PG_ARGISNULL(arg_former))
        return;
    ArrayType *array = PG_GETARG_ARRAYTYPE_P(arg_former);
    deconstruct_array(array, INT8OID, 8, true, TYPALIGN_DOUBLE, &values, &nulls, &count);
    if (count > static_cast<int>(core::most_former) || ARR_NDIM(array) > 1)
        report_argument(fcinfo, arg_former, "too many values");
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            report_argument(fcinfo, arg_former, "null");
        const int64_t value = in_bounds(fcinfo, arg_former, DatumGetInt64(values[i]), 1, PG_INT64_MAX);
        ask->former[ask->former_count++] = static_cast<uint64_t>(value);
    }
}

void read_held(FunctionCallInfo fcinfo, const core::Layout &layout, core::Ask *ask) {
    ask->holds = !PG_ARGISNULL(arg_held_node);
    if (!ask->holds)
        return;
    const int64_t end = core::largest(layout.time_bits) + 1;
    ask->held.node = bigint_argument(fcinfo, arg_held_node, 0, core::largest(core::drawn_node_bits(layout)));
    ask->held.from = bigint_argument(fcinfo, arg_held_from, 0, end);
    ask->held.until = bigint_argument(fcinfo, arg_held_until, ask->held.from, end);
    ask->held.line = static_cast<uint64_t>(bigint_argument(fcinfo, arg_held_line, 1, PG_INT64_MAX));
    // The grant came with an answer, and the latest answer is this one or a later one.
    ask->held.term = bigint_argument(fcinfo, arg_held_term, 1, ask->term);
    ask->held.serial = bigint_argument(fcinfo, arg_held_serial, 1, PG_INT64_MAX);
}

void read_policy(FunctionCallInfo fcinfo, Call *call) {
    const char *const policies[] = {"disposable", "sticky", "static"};
    const core::Layout &layout = call->layout;
    call->holder.policy = text_argument(fcinfo, arg_policy);
    int policy = 0;
    while (policy < static_cast<int>(lengthof(policies)) && strcmp(call->holder.policy, policies[policy]) != 0)
        policy++;
    if (policy == static_cast<int>(lengthof(policies)))
        report_argument(fcinfo, arg_policy, psprintf("\"%s\"", call->holder.policy));
    call->policy = static_cast<WorkerPolicy>(policy);
    if (call->policy == WorkerPolicy::fixed)
        call->worker_number =
            integer_argument(fcinfo, arg_worker_number, 0, core::largest(core::drawn_worker_bits(layout)));
    // A datacenter id means nothing to a layout without the field.
    call->datacenter_id = any_datacenter;
    if (!PG_ARGISNULL(arg_datacenter_id) && layout.datacenter_bits > 0)
        call->datacenter_id = integer_argument(fcinfo, arg_datacenter_id, 0, core::largest(layout.datacenter_bits));
}

void check_protocol(FunctionCallInfo fcinfo) {
    check_not_null(fcinfo, arg_protocol);
    check_protocol_version(PG_GETARG_INT32(arg_protocol), protocol_version);
}

} // namespace

Call read_call(FunctionCallInfo fcinfo) {
    check_protocol(fcinfo);
    Call call = {};
    core::Ask &ask = call.ask;
    call.layout = read_layout(fcinfo);
    const int64_t end = core::largest(call.layout.time_bits) + 1;
    ask.incarnation = static_cast<uint64_t>(bigint_argument(fcinfo, arg_incarnation, 1, PG_INT64_MAX));
    read_former(fcinfo, &ask);
    ask.fleet = static_cast<uint64_t>(known_or_zero(fcinfo, arg_fleet, PG_INT64_MAX));
    ask.term = known_or_zero(fcinfo, arg_term, core::largest_term);
    ask.serial = known_or_zero(fcinfo, arg_serial, PG_INT64_MAX);
    read_held(fcinfo, call.layout, &ask);
    ask.clock_us = bigint_argument(fcinfo, arg_clock_us, -1, core::max_instant_us);
    ask.lowest = bigint_argument(fcinfo, arg_lowest, 0, end - 1);
    ask.length = bigint_argument(fcinfo, arg_length, 1, PG_INT64_MAX);
    call.preset = PG_ARGISNULL(arg_preset) ? "custom" : text_argument(fcinfo, arg_preset);
    read_policy(fcinfo, &call);
    call.former_node = no_node;
    if (!PG_ARGISNULL(arg_former_node)) {
        call.former_node =
            bigint_argument(fcinfo, arg_former_node, 0, core::largest(core::drawn_node_bits(call.layout)));
        call.former_until = bigint_argument(fcinfo, arg_former_until, 0, end);
    }
    call.holder.host = text_argument(fcinfo, arg_host);
    call.holder.port = text_argument(fcinfo, arg_port);
    call.holder.system_identifier = bigint_argument(fcinfo, arg_system_identifier, PG_INT64_MIN, PG_INT64_MAX);
    call.holder.timeline = integer_argument(fcinfo, arg_timeline, 1, PG_INT32_MAX);
    call.holder.database = text_argument(fcinfo, arg_database);
    call.holder.generator = text_argument(fcinfo, arg_generator);
    call.holder.version = text_argument(fcinfo, arg_version);
    return call;
}

} // namespace uidgen::pg
