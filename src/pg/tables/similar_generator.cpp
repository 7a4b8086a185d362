#include "similar_generator.hpp"

#include "builtin.hpp"
#include "base/errors.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
// The builtin generator has the layout of a generator that is created without arguments.
SimilarGenerator similar_generator(Oid generator, const core::Layout &layout, int64_t ahead_us) {
    const Oid schema = get_namespace_oid("uid_generators", true);
    const char *name = ChooseRelationName(get_rel_name(generator), nullptr, "next", schema, false);
    const char *qualified = quote_qualified_identifier("uid_generators", name);
    const bool is_above = core::drawn_node_bits(layout) == 0;
    const int64_t earlier_s = is_above ? Max(ahead_us, 0) / us_per_second + 1 : 0;
    const char *shift = is_above ? psprintf(" - interval '%lld s'", static_cast<long long>(earlier_s)) : "";
    const char *create =
        generator == builtin_generator()
            ? psprintf("SELECT uid_generator_create(%s);", quote_literal_cstr(name))
            : psprintf("SELECT uid_generator_create(%s, preset, epoch => epoch%s, tick_us => tick_us, "
                       "time_bits => time_bits, datacenter_bits => datacenter_bits, worker_bits => worker_bits, "
                       "sequence_bits => sequence_bits, sequence_first => sequence_first, "
                       "backup_worker => backup_worker) FROM uid_generator_config WHERE generator = %s::regclass;",
                       quote_literal_cstr(name), shift, quote_literal_cstr(qualified_name(generator)));
    const char *statements = psprintf("%s GRANT USAGE ON SEQUENCE %s TO PUBLIC;", create, qualified);
    return {quote_literal_cstr(qualified), statements, is_above};
}

} // namespace uidgen::pg
