#!/bin/sh
# Compiles what torture needs beside the extension, to $UIDGEN_WORK/torture, unless it is there and newer than its source.
set -eu
. test/lib/pg.sh
programs=$UIDGEN_WORK/torture
mkdir -p "$programs"

# compile target option...
compile() {
    target=$programs/$1
    source=test/lib/torture/$(basename "$1" .so).cpp
    shift
    [ -n "$(find "$target" -newer "$source" -newer test/lib/torture/log.hpp 2>/dev/null)" ] ||
        g++ -std=c++17 -O2 -Wall -Wextra -Werror "$source" "$@" -o "$target"
}

compile worker -I"$("$PG_CONFIG" --includedir)" -L"$("$PG_CONFIG" --libdir)" -lpq
compile checker
compile disk.so -shared -fPIC -ldl
