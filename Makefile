# Two commands to start: `make demo` and `make test`. Each sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench attack oldest newest clean

help:  ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## make the virtual environment and install credalens with its development tools

$(STAMP): pyproject.toml reproduction/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable ./reproduction
	@touch $@

demo: setup  ## run the main job on an embedded example
	$(BIN)/credalens demo

test: setup  ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: setup  ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The library without torch and Ray, whose old releases bring gigabytes. Packages that are newer than the oldest ones deprecate
# what those call, which is no fault of ours.
RANGE_TESTS := tests/core tests/kernels tests/evaluation tests/plots tests/report tests/scoring tests/sklearn tests/storage \
	tests/test_prediction.py
RANGE_TOOLS := array-api-strict filelock hypothesis pandas polars pytest pytest-xdist safetensors scipy

oldest:  ## run the library's tests with the oldest supported dependencies
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable '.[cli,sklearn,report]' $(RANGE_TOOLS) 'pytest<9'
	.venv-oldest/bin/python -m pytest -n 2 -W ignore::DeprecationWarning $(RANGE_TESTS)

newest:  ## run the library's tests with the newest releases of the dependencies
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --editable '.[cli,sklearn,report]' $(RANGE_TOOLS)
	.venv-newest/bin/python -m pytest -n 2 -W ignore::DeprecationWarning $(RANGE_TESTS)

bench: setup  ## measure speed as ratios, side by side in one run
	$(BIN)/python -m benchmarks --out results/benchmark.json

MINUTES ?= 10
SEED ?= 0
attack: setup  ## try to make the library wrong for MINUTES=10, with SEED=0
	$(BIN)/python -m attack --minutes $(MINUTES) --seed $(SEED)

clean:  ## remove the environment and everything built
	rm -rf $(VENV) .venv-oldest .venv-newest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
