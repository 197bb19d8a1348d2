"""The quick tests once more, on every listed version of Python that is installed."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib

import pytest

from tests.interop.peers import OTHER_PYTHONS, PYTHONS, ROOT, UNAVAILABLE, other_python, unavailable

TESTS = (
    "src/alcid/expressions",  # doctests
    "tests/expressions",
    "--ignore=tests/expressions/test_sql_fuzz.py",  # random texts, which do not depend on Python
    "tests/formats/file_index",
    "tests/formats/puffin",
    "tests/index/bundle/test_bundle.py",
    "tests/scan/test_explanation.py",
    "tests/test_file_index.py",
    "tests/test_imports.py",
    "tests/test_options.py",
    "tests/test_types.py",
)


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_quick_tests_pass_on_another_python(version: str) -> None:
    try:
        python = other_python(version)
    except UNAVAILABLE as error:
        unavailable(f"needs Python {version} in an environment of its own: {error}")
    if python is None:
        pytest.skip(f"no Python {version} was found")
    ended = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env=os.environ | {"HYPOTHESIS_PROFILE": "few", "ALCID_COVERAGE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        pytest.fail(ended.stdout[-8000:] + ended.stderr[-2000:], pytrace=False)
    assert re.search(r"\b[0-9]{4,} passed", ended.stdout), ended.stdout[-500:]


def test_pyproject_claims_the_versions_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert tuple(claimed) == PYTHONS
    assert project["requires-python"] == f">={PYTHONS[0]}"
