#!/bin/sh
# Sees to it that marking can confine students' code: sh requirements/get-bubblewrap.sh PYTHON
# Where it may, it installs the system's package; else it says what to do and fails.
set -eu
python=$1
why='import sys; from mqlab.grading.confine import why_not_confined as why; sys.exit(why() or 0)'

if "$python" -c "$why" 2>/dev/null; then
    exit 0
fi
root=
[ "$(id -u)" = 0 ] || root='sudo -n'
if ! command -v bwrap >/dev/null && command -v apt-get >/dev/null && $root true 2>/dev/null; then
    echo 'Adding bubblewrap from the system packages'
    # Lists of packages that were never fetched, or are too old, are the usual reason to fail at first.
    DEBIAN_FRONTEND=noninteractive $root apt-get install -y --no-install-recommends -qq bubblewrap >/dev/null 2>&1 || {
        $root apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $root apt-get install -y --no-install-recommends -qq bubblewrap >/dev/null
    }
fi
if ! "$python" -c "$why"; then
    cat >&2 <<'END'
Marking needs bubblewrap 0.8 or newer, for the reason above it can't be used. One of these installs it:
    sudo apt-get install bubblewrap            (Debian, Ubuntu)
    sudo dnf install bubblewrap                (Fedora)
    conda install -c conda-forge bubblewrap    (anywhere with Linux; for this user alone)
Where it is installed and says that something is not permitted, namespaces are switched off for this user
(Ubuntu 24.04: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0; Docker: --security-opt seccomp=unconfined).
END
    exit 1
fi
