# What a newcomer needs: `make demo` and `make test`. Both set up first.
SHELL := /bin/bash
VENV ?= .venv
PAGES ?=
DATA ?= demo-data
STORE ?= demo-store
RUN ?= demo-run
STEPS ?= 200
RUNNER ?= ray
API ?= build/api
# The order of the tests: another for each commit, the same for one commit wherever it is tested.
SEED ?= $(shell printf '%d' 0x$$(git rev-parse HEAD 2>/dev/null | cut -c1-7 | grep . || echo 0))
# `.` installs the wheel in place of the working tree.
INSTALL ?= -e .
# The first interpreter from 3.11 to 3.13 that runs.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && { echo $$p; break; }; done)

# pip compiles all modules of all packages, or none (--no-compile): those that are used are compiled when they first are.
COMPILE ?= --compile
# Whoever sets this has each of a thousand processes of the tests compile what it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup packages demo test lint kernels versions lock docs wheel clean

setup: $(VENV)/.installed

packages: $(VENV)/.packages

$(VENV)/.packages: requirements.lock
	@test -n "$(PYTHON)" || { echo "curate needs Python 3.11, 3.12 or 3.13: none found on PATH. Set PYTHON=…"; exit 2; }
	@echo "packages of requirements.lock go to $(VENV): some minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(COMPILE) --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.packages pyproject.toml
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(INSTALL)
	$(VENV)/bin/curate fetch lid
	@touch $@

demo: setup
	$(VENV)/bin/python -m examples.demo_data $(DATA) $(if $(PAGES),--pages $(PAGES))
	$(VENV)/bin/curate run examples/demo.py --store $(STORE) --runner $(RUNNER) --set data=$(DATA)
	$(VENV)/bin/curate verify $(STORE)
	$(VENV)/bin/curate train $(STORE) --run $(RUN) --steps $(STEPS)
	$(VENV)/bin/curate dedup-curve --store $(STORE) >/dev/null
	@$(VENV)/bin/curate report $(STORE) --run $(RUN)

# A test that fails is tried once more, and named in the summary if it then passes: it waits for a machine or a neighbour
# that it should not, which is to be mended, but is no reason to stop everybody.
test: setup
	@$(MAKE) --no-print-directory -j3 kernels-stages kernels-extraction lint
	$(VENV)/bin/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=12 --reruns 1 --randomly-seed=$(SEED)

# Compiled once, not by each process of the tests; in two processes, beside the linters.
kernels: kernels-stages kernels-extraction

kernels-%: setup
	@log=$$(mktemp) && { $(VENV)/bin/python -m tests.compiled $* >$$log 2>&1 || { tail $$log; exit 1; }; }

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

versions:
	.ci/versions $(if $(PAGES),$(PAGES),full)

lock:
	uv pip compile --universal --python-version 3.11 --all-extras --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml -o requirements.lock

# The reference of commands into docs/cli.md, that of the library into API.
docs: setup
	$(VENV)/bin/python -m docs.cli_reference
	$(VENV)/bin/python -m docs.api_reference $(API)

wheel: setup
	rm -rf build/lib build/bdist.*
	$(VENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .

clean:
	rm -rf $(VENV) .venv-* $(DATA) $(STORE) $(RUN)
