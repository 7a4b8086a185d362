# uidgen: build with PGXS.  make && sudo make install
#
# Out of tree: make -f /path/to/uidgen/Makefile in an empty directory. CXXFLAGS on the command line replaces the server's
# flags (optimization, hardening, warnings); what the code itself needs is added to them.
#
#   WERROR=1            warnings are errors
#   SANITIZE=undefined  a build that reports undefined behaviour, for tests
#   UIDGEN_FAULTS=1     a build that can break its own guarantees (src/pg/base/faults.hpp), for tests

# PGXS sets srcdir, so what needs it is expanded later, and a list that is found empty is an error.
listed = $(or $(patsubst $(srcdir)/%,%,$(sort $(wildcard $(srcdir)/$(1)))),$(error no $(1) in $(srcdir)))

EXTENSION = uidgen
MODULE_big = uidgen
DATA = src/sql/uidgen--0.1.0.sql
OBJS = $(patsubst %.cpp,%.o,$(call listed,src/pg/*.cpp) $(call listed,src/pg/*/*.cpp))

REGRESS = $(patsubst sql/%.sql,%,$(call listed,sql/*.sql))
REGRESS_OPTS = --inputdir=$(srcdir) --temp-config=$(srcdir)/test/regress.conf

EXTRA_CLEAN = $(OBJS:.o=.d)

# Bitcode for inlining by JIT buys nothing for functions that end in a system call or an atomic.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# make would take objects that it finds in the source for its own, and then not find them here.
source := $(realpath $(srcdir))
ifneq ($(source),$(realpath $(CURDIR)))
ifneq ($(wildcard $(source)/src/pg/*.o $(source)/src/pg/*/*.o $(source)/uidgen.so),)
$(error $(source) has been built in; run make clean there first)
endif
endif

# Absolute names, because make looks for others in the source too.
rooms = $(addprefix $(CURDIR)/,$(sort $(dir $(OBJS))))
$(OBJS): | $(rooms)
$(rooms):
	mkdir -p $@

# Server headers by -isystem: their warnings are not ours to mend. libpq's header comes last, because it may stand in
# /usr/include, or beside headers of another major.
override CPPFLAGS := -isystem $(shell $(PG_CONFIG) --includedir-server) -I$(source)/src -I$(source)/src/pg $(CPPFLAGS) \
    -idirafter $(shell $(PG_CONFIG) --includedir)
override CPPFLAGS += -DUIDGEN_VERSION='"$(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(source)/uidgen.control)"'
SHLIB_LINK += $(libpq)

# Of two flags that contradict each other the later one wins. The server's, or those on the command line, stand between
# our wishes and our needs. PostgreSQL's headers need -fwrapv and -fno-strict-aliasing. The prefix maps make the library
# the same wherever it is built.
wishes = -O2 -fno-plt -Wall -Wextra -Wshadow -Wundef -Wold-style-cast -Wno-missing-field-initializers \
    -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(source)=. -ffile-prefix-map=$(source)/= -ffile-prefix-map=$(patsubst %/,%,$(srcdir))/=
needs = -std=c++17 -fwrapv -fno-strict-aliasing -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden -MMD
override CXXFLAGS := $(wishes) $(CXXFLAGS) $(needs)
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

# The style of the C++ code. Other versions of clang-format differ in places.
.PHONY: format
format:
	git -C $(source) ls-files '*.cpp' '*.hpp' '*.c' | sed 's,^,$(source)/,' | xargs clang-format-14 -i

-include $(OBJS:.o=.d)
