// Why a draw fails, as errors.
#pragma once

#include "draw.hpp"

namespace uidgen::pg {

// Whether the outcome is `done`. For one that ends the call: counts the refusal, and raises the error.
bool conclude(DrawCall *call, const Reading &reading, const core::Decision &decision, Outcome outcome);

} // namespace uidgen::pg
