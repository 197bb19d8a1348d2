# Every command works on a fresh clone: what it needs is installed first, into .venv.

PYTHON ?= python3
BIN = .venv/bin
CODE = $(wildcard src tests examples benchmarks)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start many processes, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo docs test check lint audit bench fuzz soak golden constraints clean

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## Make .venv and install alcid with its tools (PYTHON=python3.12 to choose one)

demo: .venv/.installed ## Make tables, index and ask them, change them, check every answer
	$(BIN)/alcid demo

# More processes than cores: those that share a Spark or a peer wait for it much of the time.
WORKERS ?= 3
test: .venv/.installed ## Run the tests and the doctests, and say what they reach (WORKERS=3: in so many processes)
	$(BIN)/python -m tests.interop.peers
	rm -rf .cache/coverage
	HYPOTHESIS_PROFILE=ci ALCID_COVERAGE=.cache/coverage $(BIN)/pytest -n $(WORKERS)
	$(BIN)/python -m tests.covering .cache/coverage

check: .venv/.installed ## Lint, then the quick tests of what changed, or of FOLDER=tests/scan, in 90 seconds
	$(BIN)/python -m tests.check $(FOLDER)

docs: .venv/.installed ## Build the documents into site/; a link that leads nowhere is an error
	$(BIN)/zensical build --strict

lint: .venv/.installed ## Check style, format, types, the order of the layers and the documents
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/zensical build --strict

audit: ## Look the dependencies up in the public databases of known weaknesses (needs the network)
	$(PYTHON) -m venv .audit-venv
	.audit-venv/bin/pip install --quiet pip-audit
	.audit-venv/bin/pip-audit --no-deps --disable-pip --requirement constraints.txt

bench: .venv/.installed ## Measure file indexes, table indexes, Puffin, sketches, whole queries, Spark, Paimon and Iceberg tables and upserts, beside peers; planning over 100,000 files
	$(BIN)/python -m benchmarks.file_index
	$(BIN)/python -m benchmarks.table_index
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.paimon
	$(BIN)/python -m benchmarks.upsert
	$(BIN)/python -m benchmarks.iceberg
	$(BIN)/python -m benchmarks.scale

FUZZ_SECONDS ?= 60
fuzz: .venv/.installed ## Fuzz every decoder (FUZZ_SECONDS=60 each), then run the property tests for long, with new random examples
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n 2 -m "hypothesis or fuzz" -o faulthandler_timeout=0 tests

MACHINES ?= 300
SOAK_SECONDS ?= 3600
soak: .venv/.installed ## Do random steps to tables for long, with Java and Spark too; ask random cases of all kinds; load, races, faults, kills (MACHINES=300, SOAK_SECONDS=3600, ALCID_SEED, CORPUS=folders of other people's files and tables)
	$(BIN)/python -m tests.cross --seconds $(SOAK_SECONDS) --seed $(or $(ALCID_SEED),1) --workers 2
	$(if $(CORPUS),$(BIN)/python -m tests.corpus $(CORPUS),@echo "no CORPUS=folder of other people's files: not asked")
	$(BIN)/python -m tests.faults.kills --runs 200
	$(BIN)/python -m tests.faults.kills --spark driver --runs 60 --seed $(or $(ALCID_SEED),1)
	$(BIN)/python -m tests.faults.kills --spark executor --runs 120 --seed $(or $(ALCID_SEED),1)
	$(BIN)/python -m tests.faults.kills --spark worker --runs 60 --seed $(or $(ALCID_SEED),1)
	$(BIN)/python -m tests.faults --runs 2000
	ALCID_READERS=50 ALCID_SECONDS=600 ALCID_ROUNDS=100 $(BIN)/pytest -o faulthandler_timeout=0 tests/load tests/iceberg/test_racing.py
	ALCID_MACHINES=1 HYPOTHESIS_PROFILE=ci $(BIN)/pytest -n 2 tests/interop tests/spark tests/iceberg tests/test_benchmarks.py
	ALCID_MACHINES=$(MACHINES) $(BIN)/pytest -n 2 -o faulthandler_timeout=0 \
		tests/tables/paimon/test_state_machine.py tests/tables/paimon/keyed/test_upsert_machine.py \
		tests/tables/paimon/metadata/test_commit.py \
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
	rm -rf .venv .peer-venv .py3*-venv .bench-venv .bench-data .constraints-venv .audit-venv .jars .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache .cache alcid-demo build dist site
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "alcid needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo 'installing alcid and its tools into .venv: a minute or two, once'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --constraint constraints.txt -e '.[dev]'
	@touch $@
