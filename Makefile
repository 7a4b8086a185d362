# uidgen: build with PGXS.  make && sudo make install
#
# Out of tree: make -f /path/to/uidgen/Makefile in an empty directory. CXXFLAGS on the command line replaces the server's
# flags (optimization, hardening, warnings); what the code itself needs is added to them.
#
#   WERROR=1            warnings are errors
#   SANITIZE=undefined  a build that reports undefined behaviour, for tests
#   COVERAGE=1          a build that counts what runs, in .gcda files beside the objects, for tests
#   WITHOUT_OPENSSL=1   a build that cannot conceal ids, as for a PostgreSQL without OpenSSL
#   UIDGEN_FAULTS=1     a build that can break its own guarantees (src/pg/base/settings.hpp), for tests
#
# make installcheck runs the SQL and isolation tests on a running server that has it installed, make prove_installcheck the
# TAP tests (test/README.md). make dist writes uidgen-VERSION.tar.gz: the last commit of a git checkout.

# PGXS sets srcdir, so what needs it is expanded later, and a list that is found empty is an error.
listed = $(or $(patsubst $(srcdir)/%,%,$(sort $(wildcard $(srcdir)/$(1)))),$(error no $(1) in $(srcdir)))

EXTENSION = uidgen
MODULE_big = uidgen

# The script that makes a registry on any PostgreSQL is installed beside the extension's.
DATA = src/registry/uidgen_registry.sql

# The install script is put together out of the files of src/sql, in this order: a statement follows what it needs. After
# a release the files become those of the next version, to which an update script leads, src/sql/uidgen--OLD--NEW.sql.
DATA += $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/src/sql/uidgen--*--*.sql))
script = begin core generators nodes segments originals member conceal columns adopt status \
    guards end
version = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/uidgen.control)
DATA_built = uidgen--$(version).sql
OBJS = $(patsubst %.cpp,%.o,$(call listed,src/pg/*.cpp) $(call listed,src/pg/*/*.cpp))

REGRESS = $(patsubst sql/%.sql,%,$(call listed,sql/*.sql))
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(call listed,test/isolation/specs/*.spec))
# The expected output is that of a database in UTF8, whatever the server's own encoding and locale are.
REGRESS_OPTS = --inputdir=$(srcdir) --encoding=UTF8 --no-locale
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation --load-extension=uidgen --encoding=UTF8 --no-locale

EXTRA_CLEAN = $(OBJS:.o=.d) $(OBJS:.o=.gcno) $(OBJS:.o=.gcda)

# Bitcode for inlining by JIT buys nothing for functions that end in a system call or an atomic.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS sets it too, but autoconf removes that line where PostgreSQL is built in its own source directory.
VPATH = $(srcdir)

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
override CPPFLAGS += -DUIDGEN_VERSION='"$(version)"'
SHLIB_LINK += $(libpq)

# libcrypto, if PostgreSQL was built with OpenSSL. The preprocessor reads its pg_config.h, which may only include the
# header of this architecture.
pg_config_h = $(CXX) -E -dM -x c++ -I$(shell $(PG_CONFIG) --includedir-server) -include pg_config.h /dev/null
ifndef WITHOUT_OPENSSL
ifneq ($(shell $(pg_config_h) | grep 'define USE_OPENSSL 1'),)
override CPPFLAGS += -DUIDGEN_OPENSSL
SHLIB_LINK += -lcrypto
endif
endif

# Of two flags that contradict each other the later one wins. The server's, or those on the command line, stand between
# our wishes and our needs. PostgreSQL's headers need -fwrapv and -fno-strict-aliasing. The prefix maps make the library
# the same wherever it is built. The last one that matches counts: of a directory below the source, the one of its own.
maps = $(CURDIR)=. $(source)=. $(source)/= $(patsubst %/,%,$(srcdir))/= $(if $(filter $(source)/%,$(CURDIR)),$(CURDIR)=.)
wishes = -O2 -fno-plt -Wall -Wextra -Wshadow -Wundef -Wold-style-cast -Wno-missing-field-initializers \
    $(addprefix -ffile-prefix-map=,$(maps))
needs = -std=c++17 -fwrapv -fno-strict-aliasing -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden -MMD -MP
override CXXFLAGS := $(wishes) $(CXXFLAGS) $(needs)
ifdef WERROR
override CXXFLAGS += -Werror
endif
ifdef SANITIZE
override CXXFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-sanitize=vptr
SHLIB_LINK += -fsanitize=$(SANITIZE)
endif
ifdef COVERAGE
override CXXFLAGS += -O0 --coverage
SHLIB_LINK += --coverage
endif
ifdef UIDGEN_FAULTS
override CPPFLAGS += -DUIDGEN_FAULTS
plant = $(source)/test/lib/plant.pl $(source)/test/sql_faults.tsv
endif

$(DATA_built): $(script:%=$(source)/src/sql/%.sql) $(source)/Makefile $(plant)
	cat $(filter %.sql,$^) $(if $(plant),| perl $(plant)) >$@

# The TAP tests, with servers of their own of the installed PostgreSQL, and an initdb that copies one cluster.
# PROVE_TESTS=test/tap/001_matrix.t chooses one of them, PROVE_FLAGS=-j6 runs six at a time.
PROVE_TESTS = $(call listed,test/tap/*.t)
PG_PROVE_FLAGS += -I test/tap
.PHONY: prove_installcheck
prove_installcheck:
	$(subst PATH=",PATH="$(source)/test/lib/bin:,$(prove_installcheck))

.PHONY: dist
dist:
	git -C $(source) archive --prefix=uidgen-$(version)/ -o $(CURDIR)/uidgen-$(version).tar.gz HEAD

# The style of the C++ code. Other versions of clang-format differ in places.
.PHONY: format
format:
	git -C $(source) ls-files '*.cpp' '*.hpp' '*.c' | sed 's,^,$(source)/,' | xargs clang-format-14 -i

-include $(OBJS:.o=.d)
