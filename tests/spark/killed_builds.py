"""A program: builds that are killed at a step, which takes a process for each.

For each step it forks, and the fork builds indexes of a table, in a folder of that name, until it
kills itself. A driver does the same whoever processes the files, so this is done without Spark,
which takes longer to start than all of these together.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import alcid
from alcid.storage import NewFile, Storage, new_file
from alcid.storage.local import LocalDraft
from alcid.tables import build as building
from alcid.tables import bundle_folder
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.engine import Threads
from alcid.tables.parquet import indexes
from tests.tables.folders import OPTIONS, fill

FILES, INDEXED = 6, 4


def die(*_: Any, **__: Any) -> NoReturn:
    """End immediately, without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL does not return")


def before_the_tasks(build: Callable[..., Any]) -> None:
    _set(Threads, "map", die)
    build()


def within_a_write(build: Callable[..., Any]) -> None:
    """When a bundle is on the disk, but does not have its name yet."""
    _set(Path, "hardlink_to", die)
    build()


def after_the_first_bundle(build: Callable[..., Any]) -> None:
    building.BATCH_SECONDS = 0.0
    _die_after(NewFile, "publish")
    build()


def between_two_parts_of_a_bundle(build: Callable[..., Any]) -> None:
    """When some of its bytes are on the disk, of more than fit into a part."""
    _die_in_a_part(3)
    build()


def before_the_mark_of_a_rebuild(build: Callable[..., Any]) -> None:
    _set(BundleFolder, "replace", die)
    build(rebuild=True)


def after_the_mark_of_a_rebuild(build: Callable[..., Any]) -> None:
    _die_after(BundleFolder, "replace")
    build(rebuild=True)


def before_a_merge(build: Callable[..., Any]) -> None:
    bundle_folder.MOST_BUNDLES = 0
    _set(indexes, "merge_folder", die)
    build()


def within_a_merge(build: Callable[..., Any]) -> None:
    """When the first of several merged bundles is there, but not the one that says so."""
    bundle_folder.MOST_BUNDLES = 0

    def merge(*arguments: Any, **options: Any) -> None:
        bundle_folder.FULL_BYTES = 1
        _die_after(bundle_folder, "run_merges")
        bundle_folder.merge_folder(*arguments, **options)

    _set(indexes, "merge_folder", merge)
    build()


def between_two_parts_of_a_merge(build: Callable[..., Any]) -> None:
    build()
    bundle_folder.MOST_BUNDLES = 0
    _die_in_a_part(3)
    build()


def after_a_merge(build: Callable[..., Any]) -> None:
    bundle_folder.MOST_BUNDLES = 0
    _die_after(indexes, "merge_folder")
    build()


def within_the_removal_of_old_bundles(build: Callable[..., Any]) -> None:
    bundle_folder.MOST_BUNDLES = 0
    build()
    remove = BundleFolder.remove

    def remove_and_die(folder: BundleFolder, names: Iterable[str]) -> NoReturn:
        remove(folder, list(names)[:1])
        die()

    _set(BundleFolder, "remove", remove_and_die)
    bundle_folder.GRACE = timedelta(0)
    build()


STEPS = (
    before_the_tasks,
    within_a_write,
    after_the_first_bundle,
    between_two_parts_of_a_bundle,
    before_the_mark_of_a_rebuild,
    after_the_mark_of_a_rebuild,
    before_a_merge,
    within_a_merge,
    between_two_parts_of_a_merge,
    after_a_merge,
    within_the_removal_of_old_bundles,
)


def _die_in_a_part(number: int) -> None:
    new_file.PART_BYTES = 1000
    write, parts = LocalDraft.write, iter(range(number))

    def write_or_die(draft: LocalDraft, data: bytes) -> None:
        if next(parts, None) is None:
            die()
        write(draft, data)

    _set(LocalDraft, "write", write_or_die)


def _die_after(owner: Any, name: str) -> None:
    function = getattr(owner, name)

    def call_and_die(*arguments: Any, **named: Any) -> NoReturn:
        function(*arguments, **named)
        die()

    _set(owner, name, call_and_die)


def _set(owner: Any, name: str, value: Any) -> None:
    """Replace an existing function in this process."""
    assert hasattr(owner, name)
    setattr(owner, name, value)


def build_until(step: Callable[[Callable[..., Any]], None], folder: Path) -> None:
    """Fill a table, index some of its files by two builds, and let a third one die."""
    storage = Storage.open(folder)

    def build(**how: Any) -> None:
        alcid.parquet(folder).build_indexes(OPTIONS, progress=False, **how)

    for first in range(0, INDEXED, 2):
        fill(storage, 2, first=first)
        build()
    fill(storage, FILES - INDEXED, first=INDEXED)
    step(build)


def main() -> None:
    for step in STEPS:
        process = os.fork()
        if process == 0:
            build_until(step, Path(sys.argv[1], step.__name__))
            os._exit(0)
        print(step.__name__, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if __name__ == "__main__":
    main()
