#!/bin/sh
# Makes the environment that every make target works in: new-venv.sh DIRECTORY
# Takes the Python named in $PYTHON, else the first of the usual names that is 3.11 or newer and can make an environment.
set -eu

directory=$1
wanted=${PYTHON:-}
seen=
without_venv=

# `venv --clear` follows a link, and would empty the environment of whoever it belongs to.
if [ -L "${directory%/}" ]; then
    echo "mqlab: $directory is a link, and what it leads to would be emptied: rm ${directory%/}, and give the same command again" >&2
    exit 1
fi

# The names may be shims that exist and do not run, so each is asked and not just looked up.
for python in ${wanted:-python3.13 python3.12 python3.11 python3 python}; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    seen="$seen $python=$version"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        without_venv=$version
        continue
    fi
    echo "Making $directory with $python (Python $version)"
    "$python" -m venv --clear "$directory"
    exit 0
done

{
    if [ -n "$without_venv" ]; then
        echo "mqlab: Python $without_venv is here, but its venv module is not, which Debian and Ubuntu ship apart."
        echo "  Install it:          sudo apt-get install python$without_venv-venv"
    else
        echo "mqlab needs Python 3.11 or newer to make its environment."
        if [ -n "$seen" ]; then echo "  Found only:         $seen"; else echo "  Found:               no Python that runs"; fi
        echo "  Debian and Ubuntu:   sudo apt-get install python3 python3-venv"
        echo "  Fedora:              sudo dnf install python3.13"
        echo "  macOS:               brew install python@3.13"
    fi
    echo "  Or name another one: make ${GOAL:-lab} PYTHON=/path/to/python3"
} >&2
exit 1
