# `make example`, `make example-kafka` and `make test` do all their own set-up: they need Git, Python >= 3.10 and Java 17 or 21.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.SUFFIXES:

VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLASSES := $(VENV)/spark-classes.jsa

# The first Python >= 3.10 with venv; PYTHON=... chooses another.
CANDIDATES := $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10 python
# Tests run in that many processes, a Spark each (2 GiB); a file stays together, long ones begin first.
WORKERS ?= 2
SIDE_BY_SIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
FIND_PYTHON = for name in $(CANDIDATES); do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 \
	&& { command -v "$$name"; break; }; done

.PHONY: help example example-kafka test test-fast faults clusters stories github-story workflows lint format bench docs dist clean java

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf 'make %-13s %s\n' "$$name" "$$what"; done

example: java $(INSTALLED) ## run the worked example on local Spark and Delta
	@$(BIN)/python example_project/walkthrough.py

example-kafka: java $(INSTALLED) ## change a pipeline between two Kafka topics while it runs
	@$(BIN)/python -m example_project.kafka.walkthrough

test: java $(INSTALLED) ## lint, types, layout and all tests, the slow ones included
	@$(MAKE) -j2 lint $(CLASSES)
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(PYTEST_ARGS)

test-fast: $(INSTALLED) ## the tests that start neither Spark nor other processes
	@$(BIN)/python -m pytest -m "not spark and not slow" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

faults: java $(INSTALLED) $(CLASSES) ## kill, pause and fill up: 200 seeded runs of each kind (RUNS=...)
	@SQLMIG_FAULT_RUNS=$(or $(RUNS),200) SQLMIG_CLUSTERS=standalone,connect $(BIN)/python -m pytest tests/faults $(PYTEST_ARGS)

clusters: java $(INSTALLED) $(CLASSES) ## the stories on local Spark, a standalone cluster and Spark Connect
	@SQLMIG_CLUSTERS=local,standalone,connect $(BIN)/python -m pytest tests/cluster $(PYTEST_ARGS)

github-story: java $(INSTALLED) $(CLASSES) ## run the workflows' commands: pull request, plan, merge, deploy, revert
	@$(BIN)/python -m pytest tests/github tests/cluster/test_github.py $(PYTEST_ARGS)

workflows: $(INSTALLED) ## actionlint on our workflows and those of `sqlmig init` (needs Go)
	@$(BIN)/python -m tests.github.actionlint

stories: java $(INSTALLED) $(CLASSES) ## every example of the systems that sqlmig equals, with the numbers worked out
	@$(BIN)/python -m pytest -m example $(SIDE_BY_SIDE) $(PYTEST_ARGS)

lint: $(INSTALLED) ## ruff, mypy --strict, import-linter
	@echo "ruff"; $(BIN)/ruff check --quiet .
	@echo "mypy"; $(BIN)/mypy --no-error-summary
	@echo "import-linter"; $(BIN)/lint-imports > $(VENV)/lint-imports.log 2>&1 \
		|| { cat $(VENV)/lint-imports.log; exit 1; }

format: $(INSTALLED) ## let ruff lay the code out
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

bench: java $(INSTALLED) ## measure against alembic and a bare PySpark script
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@$(BIN)/python benchmarks/run.py

docs: $(INSTALLED) ## write docs/cli.md anew from the commands
	@$(BIN)/python docs/generate_cli.py

dist: $(INSTALLED) ## build the sdist and the wheel into dist/
	@$(BIN)/python -m build --outdir dist . > $(VENV)/build.log 2>&1 \
		|| { cat $(VENV)/build.log; exit 1; }; ls dist

clean: ## remove the virtual environment and what builds and tests left
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# sqlmig's own check, which needs nothing but a Python: said before anything is downloaded.
java:
	@python=$$($(FIND_PYTHON)); if [ -n "$$python" ]; then "$$python" -m sqlmig.spark.java; fi

$(CLASSES): $(INSTALLED)
	@$(BIN)/python -m tests.java

$(INSTALLED): pyproject.toml sqlmig/__init__.py
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "error: Python 3.10 or later is needed: install python3, or say make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "error: $$python has no venv: install python3-venv, or say make PYTHON=/path/to/another" >&2; exit 1; fi; \
	if [ ! -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		rm -rf $(VENV); \
		echo "setting up $(VENV) with $$("$$python" --version); the first time downloads Spark (450 MB)"; \
		"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip; fi; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark,dev]' \
		&& touch $@
