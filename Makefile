# Every target sets up what it needs in .venv; PYTHON chooses the interpreter it is made of.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: test lint format demo soak clean

test: .venv/ready
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: .venv/ready
	$(BIN)/python -m benchmarks.demo

soak: .venv/ready
	LSM_SOAK=1 $(BIN)/python -m pytest -n $(JOBS) tests/filters tests/policies
	$(BIN)/python -m tests.soak

clean:
	rm -rf .venv build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/ready: pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	touch $@
