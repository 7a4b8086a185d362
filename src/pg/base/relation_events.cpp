#include "relation_events.hpp"

namespace uidgen::pg {
namespace {

void (*callbacks[8])(Oid relation);
int callback_count = 0;

void relation_changed(Datum, Oid relation) {
    for (int i = 0; i < callback_count; i++)
        callbacks[i](relation);
}

} // namespace

void on_relation_changed(void (*changed)(Oid relation)) {
    Assert(callback_count < static_cast<int>(lengthof(callbacks)));
    if (callback_count == 0)
        CacheRegisterRelcacheCallback(relation_changed, 0);
    callbacks[callback_count++] = changed;
}

} // namespace uidgen::pg
