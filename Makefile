# The targets of liftpy; `make help` lists them. Everything is installed into .venv, once:
# a stamp file says what it holds, and is out of date when pyproject.toml changes.

PYTHON ?= python3
LAYER  ?= 7
SAMPLES ?= 60
SEED   ?= 0
LIMIT  ?= 180
DB     ?= vgg16-$(LAYER)-seed$(SEED).db
# One worker more than there are processors: many tests wait for a process.
PYTEST ?= -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist worksteal
CASES  ?= '*'
# The tests that need no device and start no process, and the doctests.
QUICK  ?= tests/ir tests/primitives tests/language tests/rewrite tests/semantics tests/constraints \
          tests/benchmarks tests/errors/test_messages.py liftpy
PROGRAMS ?= 10000
FIRST  ?= 0

VENV := .venv
BIN  := $(VENV)/bin
LOG  := $(VENV)/setup.log

# Installs liftpy with $(EXTRAS). The output of pip goes to a file, which is named if pip fails.
define install
	@echo 'Installing liftpy and its extras $(EXTRAS) into $(VENV); the output of pip goes to $(LOG)'
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[$(EXTRAS)]' >$(LOG) 2>&1 || { \
	    grep -i error $(LOG) | tail -n 5 >&2; \
	    echo 'pip failed; all of its output is in $(LOG)' >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help setup explore format lint check quick test tests soak aarch64 prove docs conformance site bench clean
.DELETE_ON_ERROR:
# Tests start hundreds of processes, each of which would compile the modules of liftpy again.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  explore takes LAYER=$(LAYER) SAMPLES=$(SAMPLES) SEED=$(SEED) LIMIT=$(LIMIT) (seconds) DB=$(DB)"
	@echo "  soak takes PROGRAMS=$(PROGRAMS) FIRST=$(FIRST), a seed"
	@echo "  bench takes CASES=$(CASES), patterns of names such as 'vgg16/*'"
	@echo "  test and check take PYTEST=\"$(PYTEST)\"; set-up takes PYTHON=$(PYTHON)"

setup: $(VENV)/.dev ## .venv with everything to run, test and write liftpy

explore: ## a campaign on one VGG-16 layer, and its front of time and memory
	@echo 'A campaign of $(SAMPLES) candidates on vgg16/$(LAYER), for at most $(LIMIT) seconds; a few MB in $(DB).'
	@test -e $(VENV)/.run || echo \
	    'Before that, once: liftpy and an OpenCL runtime; 350 MB to download, 1.1 GB in $(VENV), 1 to 3 minutes.'
	@$(MAKE) --no-print-directory $(VENV)/.run
	@$(BIN)/liftpy explore vgg16/$(LAYER) --samples $(SAMPLES) --seed $(SEED) --time-limit $(LIMIT) --db $(DB)
	@echo
	@echo 'Next:'
	@echo '  $(BIN)/liftpy report $(DB) -o report.html   a page with the front, to open in a browser'
	@echo '  $(BIN)/liftpy run vgg16/$(LAYER) --db $(DB)   runs the fastest candidate'
	@echo '  make explore LAYER=$(LAYER) SEED=$(SEED) DB=$(DB) SAMPLES=200   continues this campaign'
	@echo '  docs/tutorial.md   the same for a program of your own'

format: $(VENV)/.dev ## formats the code and mends what the linter can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# Format, lint, types and package layers, which `check` and `test` check in
# parallel with the tests: pyright uses one core.
lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

check: $(VENV)/.dev ## for each edit: format, lint, types, imports, and the tests without a device
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: $(VENV)/.dev
	$(BIN)/pytest $(PYTEST) -m "not slow" $(QUICK)

test: $(VENV)/.dev ## format, lint, types, imports, and all tests
	@$(MAKE) --no-print-directory -j 2 lint tests

tests: $(VENV)/.dev
	$(BIN)/pytest $(PYTEST)

soak: $(VENV)/.dev ## every case of the tests, random programs, kills (hours); records tests/fuzz/*.json
	$(BIN)/pytest $(PYTEST) -m "covering or sampled or soak" --every-case
	PYTHONPATH=. $(BIN)/python tests/fuzz/soak.py --count $(PROGRAMS) --start $(FIRST)
	PYTHONPATH=. $(BIN)/python tests/fuzz/races.py --start $(FIRST)
	PYTHONPATH=. $(BIN)/python tests/fuzz/gradients.py --start $(FIRST)
	PYTHONPATH=. $(BIN)/python benchmarks/kill.py --moments 50 --record
	PYTHONPATH=. $(BIN)/python benchmarks/vgg16.py --samples 30 --record

aarch64: $(VENV)/.dev ## campaigns on an emulated aarch64 machine (as root; tests/boards/emulated.py)
	PYTHONPATH=. $(BIN)/python tests/boards/emulated.py --record

prove: $(VENV)/.dev ## proves every primitive and every rule, now
	$(BIN)/liftpy prove

docs: $(VENV)/.dev ## writes docs/rules.md from the rules, docs/primitives.md from the registry, a picture
	$(BIN)/liftpy primitives > docs/primitives.md
	$(BIN)/liftpy rules --markdown > docs/rules.md
	$(BIN)/python docs/pictures.py

conformance: $(VENV)/.dev ## ONNX's backend tests; writes their result and the operators into docs/networks.md
	PYTHONPATH=. $(BIN)/python tests/networks/conformance.py

site: $(VENV)/.dev ## the documentation as a site with a search, in site/; a broken link is an error
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.bench ## times liftpy and other libraries alternately; writes docs/performance.md
	$(BIN)/python benchmarks/bench.py --cases $(CASES)

clean: ## removes .venv, caches and builds; campaigns (*.db) stay
	rm -rf $(VENV) build dist site .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python without ensurepip (Debian's, without python3-venv) makes a bare environment, which the
# pip outside then fills.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'liftpy needs Python 3.11 or newer; name one: make PYTHON=python3.11 ...' >&2; exit 1; }
	@rm -rf $(VENV)
	@mkdir $(VENV)
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	    $(PYTHON) -m venv $(VENV); \
	else \
	    $(PYTHON) -m venv --without-pip $(VENV) \
	        && $(PYTHON) -m pip --python $(BIN)/python install pip; \
	fi >$(LOG) 2>&1 || { \
	    tail -n 5 $(LOG) >&2; \
	    echo 'no environment could be made; all output is in $(LOG)' >&2; exit 1; }
	@touch $@

$(VENV)/.run: EXTRAS := cpu,plot,report
$(VENV)/.run: $(VENV)/.made pyproject.toml
	$(install)
	@touch $@

$(VENV)/.dev: EXTRAS := cpu,plot,report,dev
$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(install)
	@touch $@ $(VENV)/.run

$(VENV)/.bench: EXTRAS := cpu,plot,report,bench
$(VENV)/.bench: $(VENV)/.made pyproject.toml
	$(install)
	@touch $@ $(VENV)/.run
