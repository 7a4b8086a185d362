# What test/one and test/server keep from one run to the next: a copy of the checkout, builds, and servers. Sourced by
# them after setup.sh; $top is set.
# shellcheck shell=sh disable=SC2034,SC2154
. "$top/test/lib/cache.sh"

# A directory for each place of a checkout, which belongs to the user that runs the tests. What a user other than root
# writes there, root does not follow: the lock and the recipe lie beside it.
find_kept() {
    if [ "$(id -u)" = 0 ]; then
        cache=${XDG_CACHE_HOME:-/var/cache}/uidgen-test
    else
        cache=${XDG_CACHE_HOME:-$HOME/.cache}/uidgen-test
    fi
    kept=$cache/one-$(printf '%s' "$top" | cksum | cut -d ' ' -f 1)
}

# What root runs here, the user postgres runs.
in_kept() {
    (cd "$kept/src" && as_tester "$kept" "$@" 9>&-)
}

# The copy of the checkout, as it stands now, in $kept/src. Another run on the same checkout waits until this one ends.
update_kept() {
    find_kept
    (umask 022 && mkdir -p "$cache")
    made=$kept
    complete=$kept.recipe
    lock_file=$kept.lock
    recipe=$(echo "$top" && echo "$PG_CONFIG" && "$PG_CONFIG" --version)
    lock -x
    remove_orphans
    made_from_recipe || remove_kept "$kept"
    mkdir -p "$kept"
    [ "$(id -u)" != 0 ] || chown postgres: "$kept"
    (cd / && as_tester "$kept" mkdir -p "$kept/src" "$kept/tmp" "$kept/log") || {
        echo "The user that runs the tests cannot write to $kept; XDG_CACHE_HOME chooses another place." >&2
        exit 1
    }
    made_from_recipe || keep_recipe
    pack_checkout | in_kept sh -c "$receive_checkout"
    write_forbidden_words | in_kept sh -c 'cat >../forbidden'
    write_subjects | in_kept sh -c 'cat >../subjects'
}

# git changes only the files that differ, and removes those that are gone. So make sees what has changed.
# shellcheck disable=SC2016 # for the shell that runs it
receive_checkout='set -eu
    rm -rf ../received ../received.index
    mkdir ../received
    tar -C ../received -x --no-same-owner
    [ -d .git ] || git init -q .
    tree=$(export GIT_INDEX_FILE="$PWD/../received.index"
        git --git-dir=.git --work-tree=../received add -Af
        git write-tree)
    rm -rf ../received
    git read-tree --reset -u "$tree"
    git checkout-index -afq'

# Of checkouts that are gone.
remove_orphans() {
    for recipe_file in "$cache"/one-*.recipe; do
        [ ! -e "$recipe_file" ] || [ -e "$(head -n 1 "$recipe_file")" ] || remove_kept "${recipe_file%.recipe}"
    done
}

# The processes whose work directory lies there are the servers, and what they run.
remove_kept() {
    work=$1
    stop_processes
    rm -rf "$1" "$1.recipe"
}

accept_results() {
    accepted=
    for name in "$@"; do
        name=$(basename "$name" | sed 's/\.[a-z]*$//')
        accept_result "$kept/results/regress/results/$name.out" "$top/expected/$name.out" "$top/sql/$name.sql"
        accept_result "$kept/results/isolation/output_iso/results/$name.out" "$top/test/isolation/expected/$name.out" \
            "$top/test/isolation/specs/$name.spec"
    done
}

# The owner is that of the test: accept_result output expected test
accept_result() {
    if [ ! -e "$1" ] || [ ! -e "$3" ] || cmp -s "$1" "$2"; then
        return 0
    elif grep -q '^skipped: ' "$1"; then
        echo "not accepted, because the test skipped: $2"
    else
        cat "$1" >"$2"
        [ "$(id -u)" != 0 ] || chown --reference="$3" "$2"
        echo "accepted: ${2#"$top"/}"
        accepted=yes
    fi
}
