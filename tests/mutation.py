"""Mutation testing of `formats`: do tests fail when its code is changed in one place?

`python -m tests.mutation FOLDER [COUNT]` makes all mutants with mutmut, in a copy of the tree, and
tries COUNT of them, drawn with a fixed seed, or all. FOLDER/results.json then says for each whether
it was killed, survived, or exceeded the limits of time or memory. Another run, with the tests of
that time, tries those that survived or were not tried yet; arguments after COUNT are given to
pytest instead of `_TESTS`.

mutmut's own runner starts pytest for every mutant, which takes longer than the tests. So here they
are collected once, as a plugin of pytest: a mutant is a fork that runs the tests which reach its
function, the quickest first, until one fails.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

_MUTATED: Final = "src/alcid/formats"
_TESTS: Final = (
    *("tests/formats", "tests/test_golden.py", "tests/test_golden_puffin.py"),
    *("tests/test_file_index.py", "tests/test_structural_damage.py", "tests/test_puffin_damage.py"),
    *("tests/test_deletion_vector_damage.py", "tests/scale/test_many_indexes.py"),
    "tests/inspect/test_bytes.py",
    # Those of memory start processes, which know nothing of mutants; the others take long.
    *("-m", "not hypothesis", "-k", "not memory and not flip and not truncation"),
)
_SEED: Final = 1
_CHILDREN: Final = 2
_MEMORY: Final = 3 << 30  # a mutant may ask for any
_NAMES, _RESULTS = Path("names.json"), Path("results.json")


def main() -> int:
    """Make the mutants, if the folder has none, and try those that were not killed."""
    folder, count, tests = Path(sys.argv[1]).resolve(), sys.argv[2:3], sys.argv[3:] or _TESTS
    if not (folder / _NAMES).exists():
        _make(folder)
    shutil.copytree("tests", folder / "tests", dirs_exist_ok=True)
    names = json.loads((folder / _NAMES).read_text("utf-8"))
    chosen = random.Random(_SEED).sample(names, int(count[0]) if count else len(names))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutation", "-p", "no:randomly"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "src"),
        "HYPOTHESIS_PROFILE": "ci",
        "ALCID_MUTANTS": json.dumps(chosen),
    }
    return subprocess.run([*command, *tests], cwd=folder, env=environment, check=False).returncode


def _make(folder: Path) -> None:
    """Copy the tree; every function of `formats` becomes itself and all of its mutants."""
    from mutmut.mutation.file_mutation import (  # type: ignore[import-not-found]
        mutate_file_contents,
    )
    from mutmut.utils.format_utils import get_mutant_name  # type: ignore[import-not-found]

    for part in ("src", "benchmarks", "examples", "docs"):
        shutil.copytree(part, folder / part)
    shutil.copy("pyproject.toml", folder)
    names = []
    for path in sorted(Path(_MUTATED).rglob("*.py")):
        mutated = mutate_file_contents(str(path), path.read_text("utf-8"))
        (folder / path).write_text(mutated.code, "utf-8")
        names += [get_mutant_name(path, name) for name in mutated.mutant_names]
    (folder / _NAMES).write_text(json.dumps(sorted(names)), "utf-8")


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the mutants, in place of running the tests once."""
    reaching = _reaching(session)
    results = json.loads(_RESULTS.read_text("utf-8")) if _RESULTS.exists() else {}
    running: dict[int, str] = {}
    for name in json.loads(os.environ["ALCID_MUTANTS"]):
        if results.get(name, "survived") != "survived":
            continue
        if len(running) == _CHILDREN:
            _await_one(running, results)
        tests = reaching[name.partition("__mutmut_")[0]]
        if not (child := os.fork()):
            os._exit(_try(name, tests))
        running[child] = name
    while running:
        _await_one(running, results)
    print("\n", dict(Counter(results.values())))
    return True


def _reaching(session: pytest.Session) -> dict[str, list[tuple[float, pytest.Item]]]:
    """The tests that reach each function, as mutmut calls it, with the time that they take."""
    from mutmut.mutation.trampoline import set_mutant_under_test  # type: ignore[import-not-found]
    from mutmut.state import state  # type: ignore[import-not-found]

    reaching = defaultdict(list)
    set_mutant_under_test("stats")
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        state()._stats.clear()
        begin = process_time()
        assert not _is_failing(item, following), f"{item.nodeid} fails without a mutant"
        for function in state()._stats:
            reaching[function].append((process_time() - begin, item))
    return reaching


def _is_failing(item: pytest.Item, following: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _try(name: str, tests: list[tuple[float, pytest.Item]]) -> int:
    """Run tests in a process of their own: 1 if one fails."""
    from mutmut.mutation.trampoline import set_mutant_under_test

    seconds = int(10 + 10 * sum(time for time, _ in tests))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    set_mutant_under_test(name)
    items = [item for _, item in sorted(tests, key=lambda test: test[0])]
    return int(any(_is_failing(item, None) for item in items))


def _await_one(running: dict[int, str], results: dict[str, str]) -> None:
    child, status = os.wait()
    said = {0: "survived", 1: "killed"}
    results[running.pop(child)] = said.get(os.waitstatus_to_exitcode(status), "limit")
    _RESULTS.write_text(json.dumps(results, indent=0), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
