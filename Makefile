# Everything sets itself up in .venv on first use; nothing else on the machine is touched,
# but `make test` and `make demo-slurm` install Debian's packages of Slurm, `make test` those of
# metrics servers too, where they may.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHARED := -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: help demo demo-slurm test unit check accuracy rules-pages format bench lock clean

help:
	@echo "make demo        see a failure and a recovery on this machine"
	@echo "make demo-slurm  the same on a real four-node Slurm (Debian, root)"
	@echo "make test        all tests, on a real Slurm where this machine allows it"
	@echo "make unit        the tests that need no Slurm"
	@echo "make check       format, lint, types, import contracts"
	@echo "make accuracy    how often diagnosis is right, and how soon hangs and slowdowns are found"
	@echo "make bench       the measurements of docs/measurements.md"

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "relight needs Python 3.11 or later: name one with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV): under three minutes, once."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/relight demo

demo-slurm: $(VENV)/.ready
	@$(BIN)/python -m relight.testing.slurm
	@$(BIN)/relight demo --slurm

test: $(VENV)/.ready
	@$(BIN)/python -m relight.testing.slurm || echo "The tests on a real Slurm will be skipped."
	@$(BIN)/python -m relight.testing.metrics || echo "The tests on real metrics servers will be skipped."
	$(BIN)/python -m pytest $(SHARED)

unit: $(VENV)/.ready
	$(BIN)/python -m pytest $(SHARED) -m "not slurm"

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

accuracy: $(VENV)/.ready
	$(BIN)/python -m accuracy
	$(BIN)/python -m accuracy --rhythms

rules-pages: $(VENV)/.ready
	$(BIN)/relight rules pages docs/rules

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready
	$(BIN)/python -m bench

lock:
	$(PYTHON) -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet uv
	$(VENV)/lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --group dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
