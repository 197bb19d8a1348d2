"""`make check`: lint, and the quick tests of what changed or of some folders, in a minute or so.

    python -m tests.check                  what differs from the main branch
    python -m tests.check tests/scan       these tests

What changed is what `git` says: files that differ from `origin/main`, or from the last commit where
there is no such branch. A changed test is run. For a changed module its doctests are run, then the
tests that import it, then those of the folder of `tests/` that mirrors its own. Tests that start
Spark, Java or a browser, and the long ones, are left to `make test`. After `SECONDS` no further
test begins, and the last line says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.shape import SOURCE, Module, import_graph, read_modules

ROOT = Path(__file__).parents[1]
SECONDS = 55.0
CODE = ("src", "tests", "examples", "benchmarks")
SLOW = ("bad", "browser", "cross", "faults", "fuzz", "iceberg", "interop", "load", "scale", "spark")
"""Folders of `tests/` that are run only if they are named."""


def changed_files() -> list[str]:
    """Files that differ from the main branch, as paths from the root of the checkout."""
    base = "origin/main" if _git("rev-parse", "--verify", "-q", "origin/main") else "HEAD"
    differing = _git("diff", "--name-only", base)
    return [*differing, *_git("ls-files", "--others", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def select_tests(changed: Iterable[str]) -> list[str]:
    """The paths that pytest is given for some changed files, those closest to them first."""
    files = [path for path in changed if path.endswith(".py") and (ROOT / path).exists()]
    modules = [path for path in files if path.startswith("src/alcid/")]
    tests = [path for path in files if path.startswith("tests/") and _is_test(Path(path))]
    mirrors = {folder for path in modules if (folder := _mirror(Path(path))) is not None}
    selected = [
        *tests,
        *modules,
        *_importers({_module_name(Path(path)) for path in modules}),
        *(str(path) for folder in sorted(mirrors) for path in sorted(folder.glob("test_*.py"))),
    ]
    return list(dict.fromkeys(path for path in selected if not _is_slow(path)))


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _is_slow(path: str) -> bool:
    parts = Path(path).parts
    return parts[0] == "tests" and parts[1] in SLOW


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to("src").with_suffix("").parts).removesuffix(".__init__")


def _mirror(module: Path) -> Path | None:
    """The folder of tests for a module: that of the same name, or of the nearest package above."""
    for folder in module.relative_to("src/alcid").parents:
        mirror = Path("tests") / folder
        if (ROOT / mirror).is_dir() and any((ROOT / mirror).glob("test_*.py")):
            return mirror
    return None


def _importers(names: set[str]) -> Iterator[str]:
    """Tests that import one of some modules by name."""
    tests = {
        str(path.relative_to(ROOT)): Module(path.stem, path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    graph = import_graph({**read_modules(SOURCE), **tests}, at_load=False)
    yield from (path for path in tests if graph[path] & names)


class Budget:
    """A pytest plugin: begins no test when the time is over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.exhausted = False

    def pytest_runtest_logfinish(self) -> None:
        if time.monotonic() > self._end and not self.exhausted:
            self.exhausted = True
            self._session.shouldstop = f"{SECONDS:.0f} seconds are over: `make test` runs the rest"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session


def run_tests(paths: list[str]) -> int:
    """Run some tests for a limited time, and return the status."""
    os.environ.setdefault("HYPOTHESIS_PROFILE", "few")
    budget = Budget(SECONDS)
    options = ["-q", "-n", "2", "--durations=0", "--durations-min=5", "-p", "no:randomly"]
    status = pytest.main([*options, *paths], plugins=[budget])
    if status == pytest.ExitCode.INTERRUPTED and budget.exhausted:
        return int(budget._session.testsfailed > 0)
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else int(status)


def lint() -> int:
    """Check style, format, types and layers, side by side."""
    commands = (
        ["ruff", "check", "--quiet", *CODE],
        ["ruff", "format", "--check", "--quiet", *CODE],
        ["mypy", *CODE],
        ["lint-imports"],
    )
    folder = Path(sys.executable).parent
    running = [
        subprocess.Popen(
            [str(folder / command[0]), *command[1:]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    status = 0
    for process in running:
        output, _ = process.communicate()
        if process.returncode:
            print(output)
            status = 1
    return status


def main() -> None:
    paths = sys.argv[1:] or select_tests(changed_files())
    status = lint()
    if paths:
        status |= run_tests(paths)
    else:
        print("no quick test mirrors what changed")
    sys.exit(status)


if __name__ == "__main__":
    main()
