# Two commands to start: `make demo` and `make test`. Each sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test test-fast check format bench attack oldest newest wheel tag workflows clean

help:  ## show this list
	@grep -E '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## make the virtual environment and install credalens with its development tools

$(STAMP): pyproject.toml reproduction/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable ./reproduction
	@touch $@

demo: setup  ## run the main job on an embedded example
	$(BIN)/credalens demo

# Some hundred processes import the same modules: byte code is kept, also where the environment says otherwise.
# Three workers on two cores: one of them mostly waits for Ray, servers and other processes.
test: setup  ## run all tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal

# What changes of the numbers and of their promises break: no adapter, no file, no server.
FAST_TESTS := tests/core tests/kernels tests/checks tests/guard tests/evaluation

test-fast: setup  ## run the tests of the numbers alone, which start no processes, in about a minute
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not processes' $(FAST_TESTS)

check: setup  ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The library without torch and Ray, whose old releases bring gigabytes. Packages that are newer than the oldest ones deprecate
# what those call, which is no fault of ours.
RANGE_TESTS := tests/core tests/kernels tests/evaluation tests/guard tests/plots tests/report tests/scoring tests/sklearn tests/storage \
	tests/test_prediction.py
RANGE_TOOLS := array-api-strict hypothesis pandas polars pytest pytest-xdist safetensors scipy

oldest:  ## run the library's tests with the oldest supported dependencies
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/$(SCRIPTS)/python -m pip install --quiet --constraint constraints-oldest.txt --editable '.[cli,sklearn,report]' $(RANGE_TOOLS) 'pytest<9'
	.venv-oldest/$(SCRIPTS)/python -m pytest -n 2 -W ignore::DeprecationWarning $(RANGE_TESTS)

newest:  ## run the library's tests with the newest releases of the dependencies
	$(PYTHON) -m venv .venv-newest
	.venv-newest/$(SCRIPTS)/python -m pip install --quiet --upgrade --editable '.[cli,sklearn,report]' $(RANGE_TOOLS)
	.venv-newest/$(SCRIPTS)/python -m pip list
	.venv-newest/$(SCRIPTS)/python -m pytest -n 2 -W ignore::DeprecationWarning $(RANGE_TESTS)

docs: $(VENV)/.docs  ## build the site in docs/_build/html, its examples executed, warnings as errors
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

bench: setup  ## measure speed as ratios, side by side in one run
	$(BIN)/python -m benchmarks --out results/benchmark.json

MINUTES ?= 10
SEED ?= 0
attack: setup  ## try to make the library wrong for MINUTES=10, with SEED=0
	$(BIN)/python -m attack --minutes $(MINUTES) --seed $(SEED)

# Tools that no test needs come into an environment of their own.
TOOLS := .venv-tools/$(SCRIPTS)

.venv-tools/.installed: constraints.txt
	$(PYTHON) -m venv .venv-tools
	$(TOOLS)/python -m pip install --quiet --constraint constraints.txt build hatchling check-jsonschema pre-commit twine
	@touch $@

wheel: dist/.built  ## build wheel and source of both distributions into dist/

dist/.built: .venv-tools/.installed pyproject.toml reproduction/pyproject.toml $(shell find src reproduction/src -type f -not -name '*.py[cio]' -not -name '*.nb[ci]')
	rm -rf dist
	$(TOOLS)/python -m build --no-isolation --outdir dist .
	$(TOOLS)/python -m build --no-isolation --outdir dist reproduction
	$(TOOLS)/python -m twine check --strict dist/*
	@touch $@

# A clean environment with the wheel and one extra, away from the sources: -I leaves out the current folder and $PYTHONPATH.
CLEAN = .venv-smoke-$*/$(SCRIPTS)/python
EXTRA = $(if $(filter-out base types paper,$*),[$*])
ALSO = $(if $(filter types,$*),mypy)$(if $(filter paper,$*),"$$(ls dist/credalens_paper-*.whl)")

smoke-%: wheel  ## try the wheel in a clean environment: smoke-base, -types, -cli, -sklearn, -report, -torch, -ray, -serve, -mlflow, -paper
	rm -rf .venv-smoke-$*
	$(PYTHON) -m venv .venv-smoke-$*
	$(CLEAN) -m pip install --quiet "$$(ls dist/credalens-*.whl)$(EXTRA)" $(ALSO)
	$(if $(filter types,$*),$(CLEAN) -m mypy --config-file= --strict tests/smoke/typed,$(CLEAN) -I tests/smoke/$*.py)

tag:  ## check that TAG=v1.2.3 names the version of the source and that the changelog has it
	@version=$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/credalens/__init__.py); \
	test "$(TAG)" = "v$$version" || { echo "the tag is '$(TAG)', the source says v$$version"; exit 1; }; \
	grep -q "^## $$version$$" CHANGELOG.md || { echo "CHANGELOG.md has no heading '## $$version'"; exit 1; }

WORKFLOWS := $(wildcard .github/workflows/*.yml)
workflows: .venv-tools/.installed  ## validate the workflows, templates and other files that a service reads
	$(TOOLS)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(TOOLS)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(TOOLS)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(TOOLS)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(TOOLS)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(TOOLS)/pre-commit validate-config

clean:  ## remove the environment and everything built
	rm -rf docs/_build docs/gallery docs/results $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
