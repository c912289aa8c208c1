# Every target sets up what it needs, works from a fresh clone as the first command, and costs nothing when all is there.
# Needs: make, a POSIX shell, Python 3.11 or newer with venv, and a network the first time. Nothing is written outside
# this directory. GNU make 3.81, which macOS has, is enough.

.DEFAULT_GOAL := help
# Two installers in one environment at once would trip over each other.
.NOTPARALLEL:
SHELL := /bin/sh

PYTHON ?=
VENV ?= .venv
CACHE := $(CURDIR)/.cache
STAMPS := $(VENV)/.stamps
BIN := $(VENV)/bin
PY := $(BIN)/python

# A home directory that can't be written to is no obstacle.
JUPYTER_CONFIG_DIR ?= $(CACHE)/jupyter/config
JUPYTER_DATA_DIR ?= $(CACHE)/jupyter/data
JUPYTER_RUNTIME_DIR ?= $(CACHE)/jupyter/runtime
IPYTHONDIR ?= $(CACHE)/ipython
UV_CACHE_DIR ?= $(CACHE)/uv
PIP_CACHE_DIR ?= $(CACHE)/pip
# One file of Spark has 450 MB; on a slow line the default of 30 seconds without an answer is not enough.
UV_HTTP_TIMEOUT ?= 180
# Else Spark's workers take the first python3 on PATH, which has none of our packages.
PYSPARK_PYTHON ?= $(if $(filter /%,$(VENV)),,$(CURDIR)/)$(PY)
export PYTHON UV_HTTP_TIMEOUT JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR UV_CACHE_DIR PIP_CACHE_DIR PYSPARK_PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Spark's source distribution and what is built of it would stay in the cache with 1.4 GB; a cache of one's own is left alone.
DROP_SPARK_SOURCE = $(if $(filter $(CACHE)/%,$(UV_CACHE_DIR)),$(BIN)/uv cache clean --quiet pyspark,:)

# Where nobody watches, lists of packages are noise.
QUIET := $(if $(CI),--quiet,)
UV_INSTALL = $(BIN)/uv pip install $(QUIET) --python $(PY) --no-build-isolation
INSTALL = $(UV_INSTALL) --require-hashes --requirement

# nbgrader adds extensions to JupyterLab, which nobody else should see.
NBGRADER_VENV ?= .venv-nbgrader

# The S3 server of the tests brings forty packages that nobody else needs.
S3_VENV ?= .venv-s3

# Strict: a cell's output must be the one in the notebook. NBVAL=--nbval-lax only runs the cells.
NBVAL ?= --nbval
# Two files of tests at a time; the cells of one notebook stay together.
PYTEST_JOBS ?= 2
LAB_FLAGS ?=

IN_PARALLEL = $(PY) -m pytest -n $(PYTEST_JOBS) --dist loadfile
NOTEBOOKS = $(NBVAL) --nbval-current-env --nbval-cell-timeout=120
# Tests that have a target of their own, so that `make test` takes eight minutes on two cores: directories, and files.
SOLVED := labs/test_given.py labs/test_solutions.py
APART := attacks browser clients cluster explore grading lite nbgrader pip real spark storage storm ways wheelhouse $(SOLVED)

.PHONY: help
help: ## this text
	@echo 'mqlab: a RocketMQ that can be stopped, stepped and looked into. Usage: make TARGET'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'The first call makes $(VENV); PYTHON=/path/to/python3 picks the Python (3.11 or newer) for it.'

# --- what people type ------------------------------------------------------------------------------------------------

.PHONY: lab
lab: $(STAMPS)/labs $(STAMPS)/project ## open JupyterLab on your copy of the labs, my-labs/ (LAB_FLAGS=--no-browser: only print the address)
	$(PY) -m mqlab lab $(LAB_FLAGS)

.PHONY: demo
demo: $(STAMPS)/labs $(STAMPS)/project ## open JupyterLab on a world that plays by itself
	$(PY) -m mqlab demo

.PHONY: run
run: $(STAMPS)/labs $(STAMPS)/spark $(STAMPS)/project ## execute every lab into out/ and print a table of them
	$(PY) -m mqlab run

.PHONY: slides
slides: $(STAMPS)/labs $(STAMPS)/slides $(STAMPS)/project ## make slides of every lab without Spark, into out/slides
	$(PY) -m mqlab course slides

.PHONY: spark
spark: $(STAMPS)/spark $(STAMPS)/project ## add Spark, and a Java for it where there is none (the Spark labs need it)

.PHONY: doctor
doctor: $(STAMPS)/labs $(STAMPS)/project ## say what is missing on this machine, and the line that mends it
	$(PY) -m mqlab doctor

.PHONY: test
test: all-sets ## what must hold, in eight minutes: lint, types, imports, labs, most tests (all of it: .ci/run)
	$(BIN)/ruff check
	$(PY) -m mypy
	$(BIN)/lint-imports
	$(PY) -m mqlab.labs check
	$(IN_PARALLEL) $(NOTEBOOKS) -m 'not slow' $(PYTEST_FLAGS) $(addprefix --ignore=tests/,$(APART)) tests labs

.PHONY: storage
storage: $(STAMPS)/spark $(STAMPS)/storage $(STAMPS)/project ## add what reaches traces and tables on HDFS and on S3

.PHONY: clients
clients: $(STAMPS)/spark $(STAMPS)/clients $(STAMPS)/project ## add RocketMQ's own Python client of 5.x, which lab 30 uses live

.PHONY: spark-archive
spark-archive: $(STAMPS)/spark $(STAMPS)/project ## one archive of the code for the workers of a cluster, out/mqlab-spark.zip
	$(PY) -m mqlab_spark.archive out/mqlab-spark.zip

.PHONY: spark-test
spark-test: all-sets ## the Spark code with one session, in three minutes
	$(IN_PARALLEL) -m 'not slow' $(PYTEST_FLAGS) tests/spark

.PHONY: explore-test
explore-test: all-sets ## drawn worlds, their rules, goals and tapes, and broken variants that the rules find, in four minutes
	$(IN_PARALLEL) $(PYTEST_FLAGS) tests/explore

.PHONY: solutions-test
solutions-test: all-sets ## what each check says of its lab's solution, of wrong ones, and of odd answers, in four minutes
	$(IN_PARALLEL) -m 'not slow' $(PYTEST_FLAGS) $(addprefix tests/,$(SOLVED))

# The judge of a Spark lab starts Spark with half the memory, which then serves the whole process: apart from the others.
.PHONY: spark-slow-test
spark-slow-test: all-sets ## the Spark labs, right and wrong solutions of them, whole builds, and streams that are killed
	$(IN_PARALLEL) -m slow $(PYTEST_FLAGS) tests/spark
	$(IN_PARALLEL) $(NOTEBOOKS) -m slow $(PYTEST_FLAGS) tests/labs labs

.PHONY: spark-cluster-test
spark-cluster-test: all-sets ## the Spark jobs on a cluster of this machine: a master and two workers
	$(PY) -m pytest $(PYTEST_FLAGS) tests/cluster

.PHONY: storage-test
storage-test: all-sets $(STAMPS)/storage $(CACHE)/jars/.stamp ## traces and tables on HDFS and on S3, of which this machine runs servers; asks Maven for what pages name
	@$(MAKE) VENV=$(S3_VENV) $(S3_VENV)/.stamps/s3-server
	$(PY) -m pytest $(PYTEST_FLAGS) tests/storage

.PHONY: clients-test
clients-test: needs-javac all-sets $(STAMPS)/clients $(CACHE)/clients/.stamp $(CACHE)/real/.stamp ## RocketMQ's own clients (Java, Python, Node.js) and mqadmin with a served world; asks Maven and npm, and needs a JDK
	MQLAB_CLIENTS=$(CACHE)/clients MQLAB_REAL=$(CACHE)/real $(PY) -m pytest $(PYTEST_FLAGS) tests/clients

.PHONY: python-client-test
python-client-test: all-sets $(STAMPS)/clients ## RocketMQ's own Python client of 5.x with a served world, and lab 30 with it, in a minute (part of clients-test)
	$(PY) -m pytest tests/clients -k 'python or lab_30' $(PYTEST_FLAGS)

.PHONY: storm-test
storm-test: all-sets ## mqlab serve under a million bad frames, a thousand silent connections and twenty kills (ten minutes)
	$(PY) -m pytest -s $(PYTEST_FLAGS) tests/storm

.PHONY: real
real: needs-java all-sets $(CACHE)/real/.stamp ## start a real RocketMQ 5.3.3 to compare with, until Ctrl-C (REAL='--port 9876 --proxy-port 8081'; needs Maven and Java)
	@MQLAB_REAL=$(CACHE)/real $(PY) -m tests.real $(REAL)

.PHONY: real-jars
real-jars: $(CACHE)/real/.stamp ## fetch that RocketMQ, 90 MB, for what starts it itself

.PHONY: real-test
real-test: needs-javac all-sets $(CACHE)/real/.stamp ## what a real RocketMQ 5.3.3 answers is what is kept of it (MQLAB_GOLDEN=write keeps it anew; needs Maven and a JDK)
	MQLAB_REAL=$(CACHE)/real $(PY) -m pytest $(PYTEST_FLAGS) tests/real

.PHONY: grading-test
grading-test: all-sets bubblewrap ## marking: a class, exams, likeness, and hostile notebooks
	$(IN_PARALLEL) $(PYTEST_FLAGS) tests/grading

.PHONY: attacks
attacks: all-sets bubblewrap ## mark a class of a hundred hostile notebooks, and see that nothing outside has changed (ten minutes)
	$(PY) -m pytest $(PYTEST_FLAGS) tests/attacks

.PHONY: labs-all-ways
labs-all-ways: all-sets ## every lab for ten other students, solved and blank, by papermill (an hour)
	$(PY) -m pytest -n $(PYTEST_JOBS) $(PYTEST_FLAGS) tests/ways

.PHONY: nbgrader-test
nbgrader-test: ## nbgrader takes a lab, and marks a class (in an environment of its own)
	@$(MAKE) VENV=$(NBGRADER_VENV) $(NBGRADER_VENV)/.stamps/nbgrader
	$(NBGRADER_VENV)/bin/python -m pytest $(PYTEST_FLAGS) tests/nbgrader

.PHONY: browser-test
browser-test: browser ## run labs and live views in a real browser, which is installed where that may be done
	$(IN_PARALLEL) $(PYTEST_FLAGS) tests/browser

.PHONY: bench
bench: all-sets fast ## measure plain and compiled, print the figures beside their aims, and write out/bench.json
	$(PY) -m benchmarks

# BENCH=spark-build, BENCH='spark-questions --events 10M --data DIRECTORY': one part.
BENCH ?= spark-build spark-questions spark-explore

.PHONY: bench-spark
bench-spark: all-sets ## measure Spark with 1, 10 and 100 M events (hours; BENCH='spark-build --events 10M': a part)
	$(PY) -m benchmarks $(BENCH) --out out/bench-spark.json

.PHONY: bench-grade
bench-grade: all-sets bubblewrap ## mark 200 notebooks, honest, wrong and hostile ones, and measure that (about 20 minutes)
	$(PY) -m benchmarks grading --out out/bench-grade.json

.PHONY: bench-serve
bench-serve: needs-javac all-sets fast $(CACHE)/real/.stamp ## measure mqlab serve beside a real RocketMQ 5.3.3 (needs Maven and a JDK)
	MQLAB_REAL=$(CACHE)/real $(PY) -m benchmarks serving --out out/bench-serve.json

HAND_IN ?=

.PHONY: site
site: $(STAMPS)/site $(STAMPS)/labs $(STAMPS)/project ## build the web site in out/site: pages, and the labs playable in the browser (HAND_IN=FILE: a teacher's form)
	$(PY) -m website $(if $(HAND_IN),--hand-in $(HAND_IN))

.PHONY: site-test
site-test: $(STAMPS)/site browser bubblewrap ## build the web site without pictures, and play its labs in a real browser
	$(PY) -m website --no-pictures --hand-in tests/lite/hand_in.json --out out/site-test
	$(PY) -m pytest -rP $(PYTEST_FLAGS) tests/lite

# WITH=--spark: Spark, too.
WITH ?=

.PHONY: wheelhouse
wheelhouse: $(STAMPS)/build ## everything to install the labs without internet, in out/wheelhouse (WITH=--spark: the Spark labs, too)
	$(PY) requirements/wheelhouse.py $(WITH)

.PHONY: wheelhouse-test
wheelhouse-test: wheelhouse $(STAMPS)/labs $(STAMPS)/dev $(STAMPS)/project ## install from out/wheelhouse without a network, and run a lab
	$(PY) -m pytest $(PYTEST_FLAGS) tests/wheelhouse

.PHONY: fast
fast: $(STAMPS)/labs $(STAMPS)/dev $(STAMPS)/project ## compile mqlab into out/fast, for mqlab fast COMMAND (needs a C compiler, 1 to 3 min)
	$(PY) -m mqlab fast build

# The compiled wheel takes its modules from out/fast.
.PHONY: wheels
wheels: fast ## build mqlab's source distribution and its wheels for this machine, pure and compiled, in out/wheels
	rm -rf out/wheels
	$(PY) -m hatchling build --directory out/wheels --target sdist --target wheel
	MQLAB_BUILD=compiled $(PY) -m hatchling build --directory out/wheels --target wheel

.PHONY: pip-test
pip-test: wheels all-sets ## install out/wheels into empty environments, and use the labs, marking and Spark there
	$(PY) -m pytest $(PYTEST_FLAGS) tests/pip

# A compiled message refuses by itself what this test hands to the store.
COMPILED_REFUSES := --deselect tests/store/test_put.py::test_a_message_without_body_is_refused

.PHONY: fast-test
fast-test: fast ## the hashes and the tests of the store and of restarted clients with the compiled mqlab
	$(PY) -m mqlab fast python -m pytest -q $(COMPILED_REFUSES) tests/lab/test_determinism.py \
		tests/lab/test_restarted_clients.py tests/store

# How many seeds of each scenario `make explore-seeds` plays; with CORPUS=out/night each has a corpus there.
SEEDS ?= 1000
CORPUS ?=

.PHONY: explore-seeds
explore-seeds: $(STAMPS)/labs $(STAMPS)/project ## play the scenarios under seeded faults (SEEDS=100: fewer than 1,000 seeds)
	@$(PY) -m mqlab scenarios --faulty | while read -r name; do \
		echo "$$name:"; $(PY) -m mqlab explore "$$name" --seeds $(SEEDS) $(if $(CORPUS),--corpus "$(CORPUS)/$$name") || exit 1; done

# How many drawn worlds `make unreached` plays; more go on from what is in out/unreached.
WORLDS ?= 2000

.PHONY: unreached
unreached: $(STAMPS)/labs $(STAMPS)/dev $(STAMPS)/project ## play drawn worlds, and write which lines none has reached into docs/checks.md (an hour)
	$(PY) -m tests.explore.unreached --seeds $(WORLDS) --write --list

.PHONY: mutants
mutants: $(STAMPS)/labs $(STAMPS)/dev $(STAMPS)/project ## break the safeguards one at a time, and write what exploration finds into docs/checks.md
	$(PY) -m tests.explore.mutants --write

.PHONY: labs
labs: $(STAMPS)/labs $(STAMPS)/spark $(STAMPS)/project ## build the notebooks from their sources
	$(PY) -m mqlab.labs build

.PHONY: truths
truths: $(STAMPS)/labs $(STAMPS)/spark $(STAMPS)/project ## say which bets have the same answer for eight students
	$(PY) -m mqlab.labs truths --ids 8

.PHONY: lint
lint: $(STAMPS)/dev $(STAMPS)/project ## ruff and the import rules
	$(BIN)/ruff check
	$(BIN)/lint-imports

.PHONY: type
type: all-sets ## mypy, strict
	$(PY) -m mypy

.PHONY: format
format: $(STAMPS)/dev ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: lock
lock: $(STAMPS)/build ## pin the requirements again (UPGRADE=--upgrade: to the newest versions)
	sh requirements/lock.sh $(BIN)/uv $(PY) $(UPGRADE)

.PHONY: clean
clean: ## back to a fresh clone: removes the environment, caches and out/
	rm -rf $(VENV) $(NBGRADER_VENV) $(S3_VENV) .cache out dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -path ./.git -prune -o -name __pycache__ -prune -exec rm -rf {} +

# --- programs of the system, and what they come with -----------------------------------------------------------------

WITH_mvn := Maven
WITH_java := a JDK or a JRE
WITH_javac := a JDK
WITH_npm := Node.js
PROGRAMS := mvn java javac npm
NEEDS = @$(MAKE) --no-print-directory

.PHONY: $(PROGRAMS:%=needs-%)
$(PROGRAMS:%=needs-%): needs-%:
	@command -v $* >/dev/null || { echo '$* is needed, and not there: it comes with $(WITH_$*)' >&2; exit 1; }

# --- the environment: one stamp for each set of packages -------------------------------------------------------------

.PHONY: all-sets
all-sets: $(STAMPS)/labs $(STAMPS)/spark $(STAMPS)/dev $(STAMPS)/slides $(STAMPS)/project

.PHONY: bubblewrap
bubblewrap: $(STAMPS)/labs $(STAMPS)/project ## see to it that marking can confine students' code (bubblewrap, installed where that may be done)
	@sh requirements/get-bubblewrap.sh $(PY)

.PHONY: browser
browser: $(STAMPS)/labs $(STAMPS)/dev $(STAMPS)/slides $(STAMPS)/project
	@sh requirements/get-chromium.sh $(PY)

# An environment holds absolute paths, so it is made anew when the directory was moved or its Python is gone.
ifneq ($(shell test -x $(PY) && cat $(STAMPS)/place 2>/dev/null),$(CURDIR))
.PHONY: $(STAMPS)/venv
endif

$(STAMPS)/venv:
	@GOAL='$(firstword $(MAKECMDGOALS))' sh requirements/new-venv.sh $(VENV)
	@mkdir -p $(STAMPS)
	@printf '%s\n' '$(CURDIR)' > $(STAMPS)/place
	@touch $@

$(STAMPS)/build: requirements/build.txt $(STAMPS)/venv
	$(PY) -m pip install --quiet --require-hashes --requirement requirements/build.txt
	@touch $@

$(STAMPS)/labs: requirements/labs.txt $(STAMPS)/build
	$(INSTALL) requirements/labs.txt
	@touch $@

$(STAMPS)/spark: requirements/spark.txt requirements/java.txt $(STAMPS)/build $(STAMPS)/project
	@echo 'Adding Spark: 450 MB, once'
	$(INSTALL) requirements/spark.txt
	@$(DROP_SPARK_SOURCE)
	@$(PY) -m mqlab.java || { echo 'Adding a Java for Spark'; $(INSTALL) requirements/java.txt; }
	@touch $@

$(STAMPS)/storage: requirements/storage.txt $(STAMPS)/build
	$(INSTALL) requirements/storage.txt
	@touch $@

# An HDFS, and what Spark takes to reach S3, which has 700 MB.
$(CACHE)/jars/.stamp: tests/storage/pom.xml
	$(NEEDS) needs-mvn
	mvn --quiet --batch-mode --file tests/storage/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CACHE)/jars
	@touch $@

$(STAMPS)/clients: requirements/clients.txt $(STAMPS)/build
	$(INSTALL) requirements/clients.txt
	@touch $@

# RocketMQ's Java clients, remoting in two versions and 5.x, and the one for Node.js.
$(CACHE)/clients/.stamp: tests/clients/pom.xml tests/clients/package-lock.json
	$(NEEDS) needs-mvn needs-npm
	for client in rocketmq-client:4.9.8 rocketmq-client:5.3.3 rocketmq-client-java:5.0.8; do \
	  mvn --quiet --batch-mode --file tests/clients/pom.xml -Dclient.name=$${client%:*} -Dclient.version=$${client#*:} \
	    dependency:copy-dependencies -DoutputDirectory=$(CACHE)/clients/$${client#*:} || exit 1; \
	done
	cp tests/clients/package.json tests/clients/package-lock.json $(CACHE)/clients
	npm ci --prefix $(CACHE)/clients --cache $(CACHE)/npm --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The real thing: name server, broker, proxy and tools.
$(CACHE)/real/.stamp: tests/real/pom.xml
	$(NEEDS) needs-mvn
	mvn --quiet --batch-mode --file tests/real/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
	  -DoutputDirectory=$(CACHE)/real
	@touch $@

$(STAMPS)/s3-server: requirements/s3-server.txt $(STAMPS)/build
	$(INSTALL) requirements/s3-server.txt
	@touch $@

$(STAMPS)/nbgrader: requirements/nbgrader.txt $(STAMPS)/labs $(STAMPS)/project
	$(INSTALL) requirements/nbgrader.txt
	@touch $@

$(STAMPS)/dev: requirements/dev.txt $(STAMPS)/build
	$(INSTALL) requirements/dev.txt
	@touch $@

# What JupyterLite is made of: wheels, and a Python for the browser. A directory of its own, since npm writes beside its lock.
# Its extension lies there, too: in the environment it would be loaded by JupyterLab, where it can't run.
SITE_PARTS := $(CACHE)/site

$(STAMPS)/site: requirements/site.txt requirements/lite.txt requirements/pyodide/package-lock.json $(STAMPS)/labs
	$(NEEDS) needs-npm
	$(INSTALL) requirements/site.txt --reinstall-package jupyterlite-pyodide-kernel
	rm -rf $(SITE_PARTS)/wheels $(SITE_PARTS)/node_modules $(SITE_PARTS)/labextensions
	mkdir -p $(SITE_PARTS)/labextensions
	mv $(VENV)/share/jupyter/labextensions/@jupyterlite $(SITE_PARTS)/labextensions
	$(PY) -m pip download --quiet --no-deps --require-hashes --only-binary=:all: --python-version 3.14 --implementation py \
		--abi none --platform any --requirement requirements/lite.txt --dest $(SITE_PARTS)/wheels
	cp requirements/pyodide/package.json requirements/pyodide/package-lock.json $(SITE_PARTS)
	npm ci --prefix $(SITE_PARTS) --cache $(CACHE)/npm --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(STAMPS)/slides: requirements/slides.txt $(STAMPS)/build
	$(INSTALL) requirements/slides.txt --no-deps
	@touch $@

$(STAMPS)/project: pyproject.toml $(STAMPS)/build
	$(UV_INSTALL) --no-index --no-deps --editable .
	@touch $@
