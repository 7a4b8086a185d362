#include "ring_memory.hpp"

namespace uidgen::pg {
namespace {

using Cell = std::atomic<uint64_t>;
static_assert(sizeof(Cell) == sizeof(uint64_t), "the ring's size is reckoned by its cells' contents");

} // namespace

dsm_handle ring_memory_make(uint64_t cells) {
    dsm_segment *segment = dsm_create(cells * sizeof(Cell), DSM_CREATE_NULL_IF_MAXSEGMENTS);
    if (segment == nullptr)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES), errmsg("too many dynamic shared memory segments"),
                        errdetail("Each generator in cached mode needs a segment for its ring."),
                        errhint("Increase max_connections, which limits the number of segments, or use fewer "
                                "generators in cached mode.")));
    auto *memory = static_cast<Cell *>(dsm_segment_address(segment));
    core::Ring<>(nullptr, memory, cells).clear();
    dsm_pin_segment(segment);
    dsm_pin_mapping(segment);
    return dsm_segment_handle(segment);
}

void ring_memory_drop(dsm_handle memory) {
    dsm_unpin_segment(memory);
    ring_memory_unmap(memory);
}

core::Ring<> ring_memory_map(dsm_handle memory, core::RingHints<> *hints, uint64_t cells) {
    dsm_segment *segment = dsm_find_mapping(memory);
    if (segment == nullptr) {
        segment = dsm_attach(memory);
        if (segment == nullptr)
            return {};
        dsm_pin_mapping(segment);
    }
    return {hints, static_cast<Cell *>(dsm_segment_address(segment)), cells};
}

void ring_memory_unmap(dsm_handle memory) {
    dsm_segment *segment = dsm_find_mapping(memory);
    if (segment != nullptr)
        dsm_detach(segment);
}

} // namespace uidgen::pg
