#!/bin/sh
# Django: its tests run in a test database that a migration sets up, in copies of it for parallel runs, in one that is
# kept from the run before, and in one from a template.
set -eu
export PYTHONPATH=django
run_tests() {
    /usr/bin/python3 -m django test shop "$@"
}
run_tests --settings=settings --parallel
run_tests --settings=settings --keepdb
run_tests --settings=settings --keepdb
run_tests --settings=template_settings --noinput
