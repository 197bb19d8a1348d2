"""Hypothesis profiles, and the line of the header that says how to run the same examples again.

HYPOTHESIS_PROFILE chooses one: `dev` (the default) draws new examples in every run, `ci` the same
ones in every run, `fuzz` draws many new ones.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

# Scripts, not tests: they need a JVM or packages that the tests do without.
collect_ignore_glob = ["golden/make_*.py"]
if "ALCID_GOLDEN" not in os.environ:  # they read that folder only
    collect_ignore_glob.append("test_golden_reference.py")

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "fuzz",
    deadline=None,
    print_blob=True,
    max_examples=10_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, before Hypothesis looks for one, so that the header can name it.

    The workers of xdist receive the options of the main process, and with them its seed.
    """
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.Random().getrandbits(32))


def pytest_report_header(config: pytest.Config) -> str:
    profile = settings()
    source = f"--hypothesis-seed={config.option.hypothesis_seed}"
    if profile.derandomize:
        source = "the same in every run"
    name = settings.get_current_profile_name()
    return f"hypothesis: profile {name}, {profile.max_examples} examples, {source}"
