"""The peers that the tests of this folder hold us against, started once for each process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.golden.paimon_jvm import BUNDLE, PaimonJvm, fetch_jar, paimon_jvm


@pytest.fixture(scope="session")
def jvm() -> Iterator[PaimonJvm]:
    """A JVM with the released Paimon; tests are skipped, or fail in CI, where there is none."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(paimon_jvm(fetch_jar(BUNDLE)))
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            missing = f"Paimon's Java needs java, mvn, the network and py4j: {error}"
            if os.environ.get("ALCID_REQUIRE_PEERS") == "1":
                pytest.fail(missing, pytrace=False)
            pytest.skip(missing)
        yield started
