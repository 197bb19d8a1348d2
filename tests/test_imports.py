"""What `import alcid` loads, and what it offers."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import alcid

# Asks who is looked for, not who is loaded: an import that is tried and fails counts too, so that
# the result is the same where a package is not installed.
PROBE = """
import sys

class Watcher:
    asked = []

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        cls.asked.append(name)

sys.meta_path.insert(0, Watcher)
import alcid
print(*sorted(set(sys.argv[1:]) & set(Watcher.asked)))
"""


def looked_for(*names: str) -> list[str]:
    """Those of `names` that a fresh interpreter looks for when it imports alcid."""
    command = [sys.executable, "-c", PROBE, *names]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_import_needs_no_engine_and_no_command_line() -> None:
    heavy = ["pandas", "py4j", "pypaimon", "pyspark", "rich", "typer"]
    assert looked_for("alcid", *heavy) == ["alcid"]


def test_public_names_are_listed_once() -> None:
    assert len(alcid.__all__) == len(set(alcid.__all__))


@pytest.mark.parametrize("name", alcid.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(alcid, name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        documentation = value.__doc__ or ""
        # A dataclass without a docstring is given its signature for one.
        assert documentation.strip(), f"alcid.{name} has no docstring"
        assert not documentation.startswith(f"{name}("), f"alcid.{name} has no docstring"
