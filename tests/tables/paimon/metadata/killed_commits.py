"""A program: commits that are killed at a step, which takes a process for each.

For each step and kind of commit it forks, and the fork commits to a table, in a folder of that
name, until it kills itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.metadata.commit import Committer
from alcid.tables.paimon.metadata.snapshot import SnapshotFolder
from tests.tables.paimon.small_tables import append, create

# What the forks do until they die; before, the table has the ids 0 to 9, and 9 is deleted.
COMMITS: dict[str, Callable[[PaimonTable], Any]] = {
    "append": lambda table: append(table, range(10, 20)),
    "delete": lambda table: delete(table, "id < 5"),
}


def die(*_: Any, **__: Any) -> NoReturn:
    """End immediately, without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL does not return")


def before_the_manifests() -> None:
    """Data files, or vectors, are written."""
    Committer._write = die  # type: ignore[method-assign]


def before_the_snapshot() -> None:
    Storage.create = die  # type: ignore[method-assign]


def within_the_snapshot() -> None:
    """It is on the disk, but does not have its name yet."""
    create_file = Storage.create

    def create_and_die(storage: Storage, path: str, data: bytes) -> None:
        Path.hardlink_to = die  # type: ignore[method-assign]
        create_file(storage, path, data)

    Storage.create = create_and_die  # type: ignore[assignment, method-assign]


def before_the_hint() -> None:
    """The snapshot exists, but nothing says that it is the latest."""
    SnapshotFolder.hint = die  # type: ignore[method-assign]


STEPS = (before_the_manifests, before_the_snapshot, within_the_snapshot, before_the_hint)


def main() -> None:
    for step in STEPS:
        for name, commit in COMMITS.items():
            process = os.fork()
            if process == 0:
                table = create(Path(sys.argv[1], f"{step.__name__}-{name}"))
                append(table, range(10))
                delete(table, "id = 9")
                step()
                commit(table)
                os._exit(0)
            print(step.__name__, name, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if __name__ == "__main__":
    main()
