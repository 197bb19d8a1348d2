"""Our own tests once more, with the oldest supported pyarrow."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.interop.peers import ROOT, UNAVAILABLE, pypaimon_python, unavailable

TESTS = (
    "tests/datafiles/parquet/test_extensions.py",
    "tests/datafiles/parquet/test_int96.py",
    "tests/datafiles/parquet/test_read.py",
    "--deselect=tests/datafiles/parquet/test_read.py::test_five_thousand_columns",  # takes long
    "tests/datafiles/parquet/test_scan.py",
    "tests/datafiles/parquet/test_types.py",
    "tests/scan/test_edges.py",
    "--deselect=tests/scan/test_edges.py::TestManyColumns",  # counts bytes, which takes long
    "tests/scan/test_sorting.py",
    "tests/expressions/test_rows.py",
    "tests/tables/paimon/test_golden_tables.py",
    "tests/index/test_build.py",
    "tests/tables/test_parquet_table.py",
    "tests/index/bundle/test_schema_columns.py",
    "tests/tables/test_merge_schemas.py",
    "tests/tables/test_fit_columns.py",
    "tests/tables/test_parquet_writer.py",
)


def test_plans_and_reads_work_with_the_oldest_pyarrow() -> None:
    try:
        python = str(pypaimon_python())
    except UNAVAILABLE as error:
        unavailable(f"needs pyarrow 19 in an environment of its own: {error}")
    version = "import pyarrow; print(pyarrow.__version__)"
    printed = subprocess.run([python, "-c", version], capture_output=True, text=True, check=True)
    assert printed.stdout.startswith("19.")
    ended = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env=os.environ | {"HYPOTHESIS_PROFILE": "few", "ALCID_COVERAGE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        pytest.fail(ended.stdout[-8000:] + ended.stderr[-2000:], pytrace=False)
