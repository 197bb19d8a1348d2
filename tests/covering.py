"""Which lines and branches of `src/alcid` the tests reach.

If ALCID_COVERAGE names a folder, measuring begins when this module is imported, so `conftest.py`
imports it before anything of alcid, and each process of the tests leaves a file there when it ends.
`python -m tests.covering FOLDER` puts them together and says whether enough is reached: all of
`formats`, and 95 % of the whole. That requires that nothing is skipped, so the status depends on it
only with ALCID_REQUIRE_PEERS. What other processes run, such as Spark's tasks, is not seen.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path
from typing import Any

_SOURCE = "src/alcid"
_WHOLE = f"{_SOURCE}/formats/"
_LEAST = 95.0


def _measure(folder: Path) -> None:
    import slipcover  # changes functions until they were run: a tenth of what tracing costs

    assert "alcid" not in sys.modules
    measured = slipcover.Slipcover(branch=True, source=[_SOURCE])
    slipcover.ImportManager(
        measured, slipcover.FileMatcher(sources=[_SOURCE])
    ).__enter__()  # for good

    def written() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps(measured.get_coverage()), "utf-8")

    atexit.register(written)


def _together(folder: Path) -> dict[str, Any]:
    """What all processes reached."""
    import slipcover

    first, *others = (json.loads(path.read_text("utf-8")) for path in folder.glob("*.json"))
    for other in others:
        slipcover.merge_coverage(first, other)
    merged: dict[str, Any] = first
    return merged


def _missing(files: dict[str, Any]) -> list[str]:
    """Lines, and branches between lines, that were not reached: a text for each file."""
    missing = []
    for name, file in sorted(files.items()):
        lines = [str(line) for line in file["missing_lines"]]
        branches = [f"{start}->{end}" for start, end in file["missing_branches"]]
        if lines or branches:
            missing.append(f"{name}: {', '.join((*lines, *branches))}")
    return missing


def main() -> int:
    """Report what was reached; the status is 1 if that is too little and nothing was skipped."""
    coverage = _together(Path(sys.argv[1]))
    own = {name: file for name, file in coverage["files"].items() if name.startswith(_WHOLE)}
    missing, reached = _missing(own), coverage["summary"]["percent_covered"]
    print(
        f"{len(own)} files of {_WHOLE}: {len(missing)} with lines or branches that no test reached"
    )
    print("\n".join(missing))
    print(f"{_SOURCE}: {reached:.2f} % of lines and branches, expected at least {_LEAST:.0f} %")
    is_enough = bool(own) and not missing and reached >= _LEAST
    return int(not is_enough and bool(os.environ.get("ALCID_REQUIRE_PEERS")))


if __name__ == "__main__":
    sys.exit(main())
if folder := os.environ.get("ALCID_COVERAGE"):
    _measure(Path(folder).resolve())
