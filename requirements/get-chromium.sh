#!/bin/sh
# Sees to it that there is a Chromium for the browser tests: sh requirements/get-chromium.sh PYTHON
# Where it may, it installs the system's package; else it says what to do and fails.
set -eu
python=$1

if "$python" -m tests.browser.chromium >/dev/null 2>&1; then
    exit 0
fi
root=
[ "$(id -u)" = 0 ] || root='sudo -n'
if command -v apt-get >/dev/null && $root true 2>/dev/null; then
    echo 'Adding Chromium from the system packages'
    # Lists of packages that were never fetched, or are too old, are the usual reason to fail at first.
    DEBIAN_FRONTEND=noninteractive $root apt-get install -y --no-install-recommends -qq chromium >/dev/null 2>&1 || {
        $root apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $root apt-get install -y --no-install-recommends -qq chromium >/dev/null
    }
fi
if ! "$python" -m tests.browser.chromium >/dev/null; then
    cat >&2 <<'END'
The browser tests need a Chromium, and none is found. One of these installs it:
    sudo apt-get install chromium                    (Debian; on Ubuntu too)
    brew install --cask chromium                     (macOS)
    .venv/bin/python -m playwright install chromium  (anywhere; for this user alone)
Then run `make browser-test` again.
END
    exit 1
fi
