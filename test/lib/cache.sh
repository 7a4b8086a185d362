# What is kept from one run of test/check to the next, because it takes minutes to make. Sourced by what makes it, which
# sets $made (a directory), $recipe (what it is made from), $complete (a file with the recipe, which is there only while
# the rest is complete) and $lock_file.
# shellcheck shell=sh disable=SC2154

# A second run waits for the first, and uses what it made. None makes it anew while another tests with it.
lock() {
    exec 9>"$lock_file"
    flock "$1" 9
}

made_from_recipe() {
    [ "$(cat "$complete" 2>/dev/null)" = "$recipe" ]
}

# After a power failure too, the file must not be there without the rest.
keep_recipe() {
    sync -f "$made"
    echo "$recipe" >"$complete"
}

# step name command...: its time is shown after success; all it says, after a failure.
step() {
    name=$1
    shift
    start=$(date +%s)
    "$@"
    echo "step $name: $(($(date +%s) - start)) s"
}
