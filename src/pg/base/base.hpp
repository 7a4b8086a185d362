// What every file of src/pg may use: the server's headers, settings, clocks and errors. src/README.md, Who may touch
// what, says what a comment of src/pg leaves out.
#pragma once

#include "compat.hpp"
#include "errors.hpp"
#include "settings.hpp"
#include "time_source.hpp"
