#!/bin/sh
# Pins every requirement, with hashes and without addresses: lock.sh UV PYTHON [--upgrade]
# Each set is pinned under the sets before it, since all of them share one environment.
set -eu

uv=$1
python=$2
shift 2

pin() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --no-annotate "$@"
}

pin "$@" requirements/build.in -o requirements/build.txt
pin "$@" requirements/java.in -o requirements/java.txt
pin "$@" --no-deps requirements/slides.in -o requirements/slides.txt
pin "$@" pyproject.toml --extra labs --extra widgets --extra trace --extra codecs \
    -c requirements/build.txt -c requirements/together.in -o requirements/labs.txt
pin "$@" pyproject.toml --extra spark --extra serve \
    -c requirements/build.txt -c requirements/labs.txt -o requirements/spark.txt
pin "$@" pyproject.toml --extra storage \
    -c requirements/build.txt -c requirements/labs.txt -c requirements/spark.txt -o requirements/storage.txt
pin "$@" pyproject.toml --extra dev \
    -c requirements/build.txt -c requirements/labs.txt -c requirements/spark.txt -o requirements/dev.txt
pin "$@" requirements/s3-server.in -o requirements/s3-server.txt
pin "$@" pyproject.toml --extra clients \
    -c requirements/build.txt -c requirements/labs.txt -c requirements/spark.txt -c requirements/storage.txt \
    -c requirements/dev.txt -o requirements/clients.txt
pin "$@" requirements/nbgrader.in -c requirements/build.txt -c requirements/labs.txt -o requirements/nbgrader.txt

pin "$@" requirements/site.in \
    -c requirements/build.txt -c requirements/labs.txt -c requirements/spark.txt -c requirements/dev.txt \
    -o requirements/site.txt

# These run in the browser, in Pyodide's Python. JupyterLite brings its own widgetsnbextension, and the page the widgets' other half.
"$uv" pip compile --quiet --python-version 3.14 --python-platform wasm32-pyodide2025 --generate-hashes \
    --no-emit-index-url --no-header --no-annotate --no-emit-package widgetsnbextension --no-emit-package jupyterlab-widgets \
    "$@" requirements/lite.in -o requirements/lite.txt

"$python" requirements/conda.py
