"""Tables in S3 are read and written with the keys and the endpoint of their catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import fetch_jar
from tests.iceberg.s3_catalog import AWS, ROWS
from tests.interop.peers import ROOT, UNAVAILABLE, unavailable


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """The result of each catalog, in a Spark that has Iceberg's `S3FileIO`."""
    pytest.importorskip("moto", reason="needs moto[server]")
    try:
        for jar in (RUNTIME, AWS):
            fetch_jar(jar)
    except UNAVAILABLE as error:
        unavailable(f"Iceberg's S3FileIO needs mvn and the network: {error}")
    # No keys of this machine, which would work where the catalog has none.
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.iceberg.s3_catalog"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return results


@pytest.mark.parametrize(("name", "appends"), [("vended", 1), ("kept", 2)])
def test_all_works_without_storage_options(
    results: dict[str, dict[str, Any]], name: str, appends: int
) -> None:
    """Credentials that the catalog returns with the table, and those of its properties."""
    first, left = (appends - 1) * ROWS, appends * (ROWS - 10)
    assert results[name] == {
        "scan": [{"id": first + 7, "name": "n7"}],
        "indexes": [["id", appends, 0], ["name", appends, 0]],
        "count": ROWS // 10,
        "deleted": 10,
        "left": [left, left],
        "problems": [],
    }


@pytest.mark.parametrize(
    ("name", "problem", "options"),
    [
        ("wrong", "ACCESS_DENIED", "access_key, secret_key, endpoint_override, region"),
        ("keyless", "ACCESS_DENIED", "endpoint_override, region"),
        ("closed", "NETWORK_CONNECTION", "access_key, secret_key, endpoint_override, region"),
    ],
)
def test_settings_that_do_not_work_are_an_error_within_seconds_that_says_what_to_give(
    results: dict[str, dict[str, Any]], name: str, problem: str, options: str
) -> None:
    error = results[name]["error"]
    assert error.startswith("s3://lake/db/t/metadata/snap-")
    assert f"AWS Error {problem} during HeadObject" in error
    assert f"; read with {options} of the catalog: give storage_options for others, as" in error
    assert not any(secret in error for secret in ("secret-for-long", "AKIA"))
    assert results[name]["seconds"] < 5  # about half a second if nothing else runs
