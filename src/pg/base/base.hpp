// What every file of src/pg may use: the server's headers, settings, clocks and errors.
#pragma once

#include "compat.hpp"
#include "errors.hpp"
#include "settings.hpp"
#include "time_source.hpp"
