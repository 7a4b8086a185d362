# uidgen: build with PGXS.  make && sudo make install
#
#   WERROR=1            warnings are errors
#   SANITIZE=undefined  a build that reports undefined behaviour, for tests
#   UIDGEN_FAULTS=1     a build that can break its own guarantees (src/pg/faults.hpp), for tests

EXTENSION = uidgen
MODULE_big = uidgen
DATA = src/sql/uidgen--0.1.0.sql
OBJS = $(patsubst %.cpp,%.o,$(sort $(wildcard src/pg/*.cpp)))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --temp-config=test/regress.conf

EXTRA_CLEAN = $(OBJS:.o=.d)

# Bitcode for inlining by JIT buys nothing for functions that end in a system call or an atomic.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Server headers by -isystem: their warnings are not ours to mend.
override CPPFLAGS := -isystem $(shell $(PG_CONFIG) --includedir-server) -Isrc $(CPPFLAGS)
override CXXFLAGS += -std=c++17 -O2 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden -fno-plt \
    -Wall -Wextra -Wshadow -Wundef -Wold-style-cast -Wno-missing-field-initializers -MMD
ifdef WERROR
override CXXFLAGS += -Werror
endif
ifdef SANITIZE
override CXXFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-sanitize=vptr
SHLIB_LINK += -fsanitize=$(SANITIZE)
endif
ifdef UIDGEN_FAULTS
override CPPFLAGS += -DUIDGEN_FAULTS
endif

-include $(OBJS:.o=.d)
