# Every target sets up what it needs in .venv; PYTHON chooses the interpreter it is made of.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: test check full cover installs lint format demo bench soak asan wheel clean

# Who has run its tests takes some of the other's: a few of them take much longer than most.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=10

# Every behaviour once, volume on the compiled kernel: what to run after a change.
test: .venv/ready
	$(PYTEST)

# All that must hold before a change lands. The suite comes last, so that its summary is.
check: lint installs demo asan cover full

# The suite at the volume that proves it, on both kernels. Databases are on one of them at a time:
# their tests run again, at their least volume, on the readable one.
full: .venv/ready
	LSM_EFFORT=full $(PYTEST)
	LSM_KERNEL=python $(PYTEST) tests/lsm

# Which lines the tests go through that are about them; hunts, which go through all, are left out.
cover: .venv/ready
	$(PYTEST) --cov --cov-report=term

# As users install it: without a compiler, with one, and where there has to be one.
installs: wheel
	.ci/installs $(PYTHON) dist/*.whl

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pyright --pythonpath $(BIN)/python --pythonversion 3.12

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: .venv/ready
	$(BIN)/python -m benchmarks.demo
	$(BIN)/python -m benchmarks --quick

# BENCH takes options: make bench BENCH="filters --keys-file mine.txt"
bench: .venv/ready
	$(BIN)/python -m benchmarks $(BENCH)

soak: .venv/ready
	LSM_EFFORT=soak $(PYTEST) tests/filters tests/policies tests/lsm
	LSM_EFFORT=soak $(BIN)/python -m tests.lsm.kills
	$(BIN)/python -m tests.soak

# The kernel tests with every memory access and every C operation of the native kernels watched, the
# engine's also over files that somebody forged. Not by python -m pytest: that would find the modules
# of the checkout first, which are not watched.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g
WATCHED := LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so) $$($${CC:-cc} -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc PYTHONPATH=build/asan:. LSM_TESTED_AT=build/asan \
    $(BIN)/pytest -n $(JOBS) --dist worksteal
asan: .venv/ready
	rm -rf build/asan
	LSM_REQUIRE_NATIVE=1 LSM_CFLAGS="$(SANITIZE)" \
	    $(BIN)/python -m pip install --quiet --no-deps --target build/asan .
	$(WATCHED) -k native tests/filters
	$(WATCHED) tests/lsm/kernels tests/lsm/test_table_bytes.py tests/lsm/test_forged_files.py

wheel: .venv/ready
	rm -rf dist
	LSM_REQUIRE_NATIVE=1 $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -f filters/kernels/native/*.so lsm/kernels/native/*.so filters/kernels/native/why_not.py
	rm -rf .venv build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

NATIVE := $(wildcard $(foreach folder,filters lsm,$(addprefix $(folder)/kernels/native/*.,pyx pxd h)))

.venv/ready: pyproject.toml setup.py $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[test,lint,bench]" || { \
	    echo "Not all libraries to compare with can be installed here; going on without them."; \
	    $(BIN)/python -m pip install --quiet --editable ".[test,lint]" rich; }
	touch $@
