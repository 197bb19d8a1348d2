# Every command works on a fresh clone: what it needs is installed first, into .venv.

PYTHON ?= python3
BIN = .venv/bin
CODE = $(wildcard src tests examples benchmarks)

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench fuzz soak golden constraints clean

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## Make .venv and install alcid with its tools (PYTHON=python3.12 to choose one)

demo: .venv/.installed ## Build an index, ask it, look into it
	$(BIN)/python examples/first_index.py

test: .venv/.installed ## Run the tests and the doctests
	$(BIN)/python -m tests.interop.peers
	HYPOTHESIS_PROFILE=ci $(BIN)/pytest -n 2

lint: .venv/.installed ## Check style, format, types and the order of the layers
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

bench: .venv/.installed ## Measure file indexes, table indexes, Puffin, sketches, whole queries, Spark, Paimon and Iceberg tables and upserts, beside peers
	$(BIN)/python -m benchmarks.file_index
	$(BIN)/python -m benchmarks.table_index
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.paimon
	$(BIN)/python -m benchmarks.upsert
	$(BIN)/python -m benchmarks.iceberg

fuzz: .venv/.installed ## Run the property tests for long, with new random examples
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n 2 -m "hypothesis or fuzz" -o faulthandler_timeout=0 tests

MACHINES ?= 300
soak: .venv/.installed ## Do random steps to tables for long, with Java and Spark too (MACHINES=300, ALCID_SEED)
	ALCID_MACHINES=$(MACHINES) $(BIN)/pytest -n 2 -o faulthandler_timeout=0 \
		tests/tables/paimon/test_state_machine.py tests/tables/paimon/keyed/test_upsert_machine.py \
		tests/tables/paimon/test_commit.py \
		tests/interop/test_paimon_machine_java.py tests/interop/test_upsert_machine_java.py \
		tests/spark/test_paimon_machine.py tests/spark/test_upsert_machine_spark.py \
		tests/iceberg/test_iceberg_machine.py

golden: .venv/.installed ## Make the golden files again (needs Java and Maven)
	$(BIN)/python -m tests.golden.make_paimon_java
	$(BIN)/python -m tests.golden.make_pypaimon_rust
	$(BIN)/python -m tests.golden.make_table_index_java
	$(BIN)/python -m tests.golden.make_table_index_rust
	$(BIN)/python -m tests.golden.make_paimon_tables
	$(BIN)/python -m tests.golden.make_iceberg_java

# pypaimon is not in the list: it holds pyarrow below 20.
constraints: ## Take the newest versions of everything into constraints.txt
	rm -rf .constraints-venv
	$(PYTHON) -m venv .constraints-venv
	.constraints-venv/bin/pip install --quiet -e '.[dev]'
	{ grep '^#' constraints.txt; .constraints-venv/bin/pip freeze --exclude-editable; } > .constraints-venv/new
	mv .constraints-venv/new constraints.txt
	rm -rf .constraints-venv

clean: ## Remove all that these commands made, but not the golden files
	rm -rf .venv .peer-venv .bench-venv .bench-data .constraints-venv .jars .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache build dist
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "alcid needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt -e '.[dev]'
	@touch $@
