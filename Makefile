# make demo    fit the eight schools; result and report in out/
# make test    run the tests
# make test-long      the tests that take minutes: large problems, processes that are killed
# make test-external  the tests that need other people's packages: NumPyro, PyMC, Stan, PyTorch, ...
# make test-browser   the report page in Debian's chromium, headless (apt-get install chromium chromium-driver)
# make soak MINUTES=5 random problems through random options, with laws checked; counts are printed
# make fuzz MINUTES=5 every file reader on bytes that a fuzzer chooses; what it finds is kept in out/fuzz
# make compat         the core tests with the oldest versions that pyproject.toml allows, in .venv-oldest
# make dist-check     wheel and sdist are built, and install into an empty environment
# make bench   the leaderboard: us and our peers on a few problems; make bench-full: all of them, ten seeds, a night
# make docs    build the documentation into site/; make docs-serve shows it
# make check   formatter, linter, type checker, layers, all tests
#
# Each makes .venv and installs what it needs, once per change of pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1


.PHONY: docs docs-serve demo test test-long test-external test-browser soak fuzz compat audit bench bench-full dist-check static check clean

demo: $(VENV)/installed-plots
	$(BIN)/quenched fit examples/eight_schools.py --out out

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile

LONG ?= tests/long
test-long: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile $(LONG)

test-external: $(VENV)/installed-external
	$(BIN)/python -m pytest -n auto --dist loadfile --durations 8 tests/external

test-browser: $(VENV)/installed-browser
	$(BIN)/python -m pytest tests/browser

# BENCH="--seeds 3 --budget 3600" for more seeds, in portions: what is in the results already is not run again.
BENCH_VENV := .venv-bench
bench: $(BENCH_VENV)/installed
	$(BENCH_VENV)/bin/python -m benchmarks.leaderboard $(BENCH)

bench-full: $(BENCH_VENV)/installed
	$(BENCH_VENV)/bin/python -m benchmarks.leaderboard --full $(BENCH)

MINUTES ?= 5
SOAK_SEED ?= 0
soak: $(VENV)/installed-test
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES) --seed $(SOAK_SEED)

fuzz: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet atheris || echo "no atheris for this Python: bytes are mutated at random"
	$(BIN)/python benchmarks/fuzz.py --minutes $(MINUTES)

# A dependency's deprecation warning is an error there, as it is everywhere.
compat:
	PYTHON=$(PYTHON) .ci/compat

audit: $(VENV)/installed-test
	PYTHON=$(PYTHON) .ci/audit

docs: $(VENV)/installed-docs
	$(BIN)/mkdocs build

docs-serve: $(VENV)/installed-docs
	$(BIN)/mkdocs serve

dist-check:
	PYTHON=$(PYTHON) .ci/dist-check

static: $(VENV)/installed-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

check: static
	$(MAKE) test
	$(MAKE) test-long
	$(MAKE) test-external
	$(MAKE) dist-check

clean:
	rm -rf $(VENV) $(BENCH_VENV) out

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "quenched needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed-external: pyproject.toml .ci/install-external | $(VENV)/created
	.ci/install-external $(BIN)/python
	@touch $@

# The extra after the hyphen, as named in pyproject.toml.
$(VENV)/installed-%: pyproject.toml | $(VENV)/created
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

# Peers are installed beside the library, never with it.
$(BENCH_VENV)/installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable . --requirement benchmarks/requirements.txt
	@touch $@
