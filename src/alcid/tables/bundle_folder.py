"""The bundles of a table, as files in a folder.

    _alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin

A name says when the bundle was written, so that names sort by age, and has a random end, so that no
two writers choose the same. A bundle never changes, and appears whole or not at all: writers need
no lock, and whoever removes a bundle, or all of them, only makes queries slower.

A merged bundle names those that it replaces, which are not used from the moment it appears. They
are removed by a later build, when queries that still read them are over.
"""

from __future__ import annotations

import errno
import io
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from alcid._arrays import split_by
from alcid.errors import AlcidError, FileGoneError, FormatError, StorageError
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    MergeCandidate,
    MergePlan,
    PayloadKind,
    choose_bundles,
    open_bundles,
    plan_merge,
)
from alcid.storage import Listing, NewFile, Storage, retry
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task

FOLDER = "_alcid"
"""Where bundles lie in the folder of a table; Spark passes over such names."""

_TIME = "%Y%m%dT%H%M%S.%fZ"
_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)-[0-9a-f]{12}\.puffin")
_ATTEMPTS = 3
_FORBIDDEN = errno.EACCES, errno.EPERM, errno.EROFS
_ELSEWHERE = (
    "where nothing may be written beside the data, indexes go into another folder: open the table"
    " with index_path=..., or --index-path"
)


def new_name() -> str:
    """A name for a bundle that is written now."""
    return f"{datetime.now(UTC).strftime(_TIME)}-{uuid.uuid4().hex[:12]}.puffin"


def written_at(name: str) -> datetime | None:
    """When the bundle of that name was written; None if it is no name of a bundle.

    >>> written_at("20250801T093000.123456Z-5f1e0c7ab2d4.puffin").isoformat()
    '2025-08-01T09:30:00.123456+00:00'
    """
    match = _NAME.fullmatch(name)
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC) if match else None
    except ValueError:  # a month 13
        return None


@dataclass(frozen=True, slots=True, eq=False)
class FolderBundles:
    """The bundles of a folder, the oldest first."""

    names: tuple[str, ...]
    """All bundles."""
    bundles: tuple[Bundle, ...]
    """Those that can be read."""

    @property
    def readable(self) -> tuple[str, ...]:
        """The names of those that can be read."""
        return tuple(map(bundle_name, self.bundles))

    @property
    def current(self) -> tuple[Bundle, ...]:
        """Those that no other replaces."""
        replaced = self.replaced()
        return tuple(bundle for bundle in self.bundles if bundle_name(bundle) not in replaced)

    def against(
        self,
        listing: Listing,
        *,
        strict: bool = False,
        on_damage: Callable[[AlcidError], None] | None = None,
    ) -> BundleSet:
        """Those in use, compared with the files of a table."""
        return BundleSet(
            self.current,
            listing.paths,
            listing.sizes,
            listing.versions,
            strict=strict,
            on_damage=on_damage,
        )

    def replaced(self, before: datetime | None = None) -> set[str]:
        """The bundles that others replace, which were written `before` some time."""
        return {
            name
            for bundle in self.bundles
            if before is None or _is_older(bundle_name(bundle), before)
            for name in bundle.replaces
        } & set(self.names)

    def unreadable(self) -> list[str]:
        """The bundles that cannot be read."""
        readable = set(self.readable)
        return [name for name in self.names if name not in readable]


def _is_forbidden(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and (
        error.errno in _FORBIDDEN
        or isinstance(error, PermissionError)
        or "ACCESS_DENIED" in str(error)
    )


def bundle_name(bundle: Bundle) -> str:
    """The name of a bundle in its folder."""
    return bundle.name.rpartition("/")[2]


def _is_older(name: str, timestamp: datetime) -> bool:
    at = written_at(name)
    return at is not None and at < timestamp


class BundleFolder:
    """The folder that the bundles of a table are in."""

    def __init__(self, storage: Storage, under: str = "") -> None:
        """The folder `under` of a storage, which need not exist."""
        self.storage, self.under = storage, under

    def load(
        self, *, strict: bool = False, on_damage: Callable[[AlcidError], None] | None = None
    ) -> FolderBundles:
        """List and open the bundles; one that vanishes meanwhile was replaced, so: once more.

        A damaged one is an error with `strict`, else a warning, or a call of `on_damage`.

        Raises:
            FileGoneError: Bundles vanish again and again.
        """

        def attempt() -> FolderBundles:
            listing = self.storage.list(self.under, suffix=".puffin")
            sources = {
                name: self.storage.source(path, size)
                for path, size in zip(
                    listing.paths.to_pylist(), listing.sizes.tolist(), strict=True
                )
                if written_at(name := path.rpartition("/")[2]) and path == self.path(name)
            }
            bundles = open_bundles(
                sources.values(),
                strict=strict,
                read_many=self.storage.read_ranges,
                on_damage=on_damage,
            )
            return FolderBundles(tuple(sources), tuple(bundles))

        return retry(attempt, on=FileGoneError, attempts=_ATTEMPTS)

    def is_damaged(self, name: str) -> bool:
        """Whether a bundle cannot be read, and that is not because it is of a later version."""
        try:
            Bundle.open(self.storage.source(self.path(name)))
        except FormatError:
            return True
        except (AlcidError, OSError):
            return False
        return False

    def put(self, data: bytes) -> str:
        """Write a bundle under a new name, and return that."""
        name = new_name()
        self.write(name, data)
        return name

    def write(self, name: str, data: bytes) -> None:
        """Write a file that has this name in the folder.

        Raises:
            StorageError: It cannot be written; where it may not, beside the data, there is a hint.
        """
        with self._hint():
            self.storage.put(self.path(name), data)

    @contextmanager
    def new_bundle(self) -> Iterator[NewFile]:
        """Write a bundle of any size under a new name; it appears when the `with` block ends.

        Raises:
            StorageError: As for `write`.
        """
        with self._hint(), self.storage.new_file(self.path(new_name())) as file:
            yield file

    @contextmanager
    def _hint(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            if not (self.under and _is_forbidden(error.__cause__)):
                raise
            problem = f"{error.problem}; {_ELSEWHERE}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error.__cause__

    def replace(self, names: Sequence[str]) -> None:
        """Mark bundles as replaced, by an empty bundle that names them."""
        if names:
            data = io.BytesIO()
            BundleWriter(data, replaces=names).finish()
            self.put(data.getvalue())

    def remove(self, names: Iterable[str]) -> None:
        """Remove bundles; those that are not there are passed over."""
        self.storage.delete([self.path(name) for name in names])

    def path(self, name: str) -> str:
        """The path of a file of that name in the storage."""
        return f"{self.under}/{name}" if self.under else name


STATISTICS_PREFIX = "statistics-"
"""How the names of files of statistics begin; the rest is like the name of a bundle."""


FULL_BYTES = 256 << 20
"""Payloads that a bundle is filled up to."""
MOST_BUNDLES = 16
"""More small bundles than this are merged by the next build."""
GRACE = timedelta(minutes=10)
"""How long a bundle that was replaced is kept for those who are reading it."""


def bundles_to_merge(
    contents: FolderBundles, listing: Listing, *, thorough: bool = False
) -> tuple[Bundle, ...]:
    """The bundles in use that are worth merging; see `choose_bundles`."""
    bundles = contents.against(listing, on_damage=_ignore)
    fresh = dict(zip(map(bundle_name, bundles.bundles), bundles.fresh_entries(), strict=True))
    candidates = []
    for bundle in contents.current:
        live = int(fresh.get(bundle_name(bundle), 0))
        is_damaged = not _is_intact(bundle)
        candidates.append(
            MergeCandidate(bundle.source.size, bundle.file_count, live, required=is_damaged)
        )
    chosen = choose_bundles(candidates, full=FULL_BYTES, most=MOST_BUNDLES, thorough=thorough)
    return tuple(contents.current[number] for number in chosen)


def merge_folder(
    folder: BundleFolder,
    contents: FolderBundles,
    listing: Listing,
    engine: Engine,
    *,
    chosen: Collection[Bundle] | None = None,
    kinds: Collection[PayloadKind] | None = None,
) -> list[str]:
    """Write what is fresh in bundles anew, in as many as it fills; the last replaces the old ones.

    By default that is all kinds of payloads of all bundles. It is planned here, from the tables of
    files and the directories; tasks of the engine read and write the payloads. Returns the names of
    the new bundles.
    """
    if chosen is None:
        replaced = contents.readable
    else:  # with those that the chosen ones replace: nothing else may say so any more
        names = {name for bundle in chosen for name in (bundle_name(bundle), *bundle.replaces)}
        replaced = tuple(name for name in contents.readable if name in names)
    bundles = contents.against(listing)
    numbers = bundles.numbers(chosen)
    sizes = np.zeros(len(listing), np.int64)
    for kind in bundles.kinds if kinds is None else kinds:
        coverage = bundles.coverage(kind)
        sizes += np.where(np.isin(coverage.bundles, numbers), coverage.lengths, 0)
    live, _ = bundles.live(numbers)
    parts = split_by(live, (np.cumsum(sizes[live]) - sizes[live]) // FULL_BYTES)
    merges = []
    for number, part in enumerate(parts, 1):
        of_part = contents.against(listing.part(part))
        last = replaced if number == len(parts) else ()
        plan = plan_merge(of_part, chosen=chosen, kinds=kinds, replaces=last)
        old = (of_part.bundles[position] for position in plan.numbers)
        sources = tuple((bundle_name(bundle), bundle.source.size) for bundle in old)
        merges.append(Merge(plan, sources))
    # The last one, which replaces the old bundles, when all others are there.
    return [*run_merges(folder, merges[:-1], engine), *run_merges(folder, merges[-1:], engine)]


@dataclass(frozen=True, slots=True)
class Merge:
    """A bundle that is to be merged from others."""

    plan: MergePlan
    sources: tuple[tuple[str, int], ...]
    """The names and sizes of the bundles that it is merged from."""


def run_merges(folder: BundleFolder, merges: Sequence[Merge], engine: Engine) -> list[str]:
    """Write merged bundles by tasks, and return their names."""
    if not merges:
        return []
    sizes = np.array([merge.plan.size for merge in merges], np.int64)
    return [name for names in engine.map(_MergeWork(folder), merges, sizes) for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class _MergeWork:
    """Writes merged bundles one after the other, for `Engine.map`."""

    folder: BundleFolder

    def __call__(self, task: Task[Sequence[Merge]]) -> list[str]:
        threads = min(task.threads, len(task.items))
        with closing(in_order(self._write, task.items, max(threads, 1))) as names:
            return list(names)

    def _write(self, merge: Merge) -> str:
        storage = self.folder.storage
        sources = [storage.source(self.folder.path(name), size) for name, size in merge.sources]
        with self.folder.new_bundle() as file:
            merge.plan.write(file, sources, read_many=storage.read_ranges)
        return file.path.rpartition("/")[2]


def remove_replaced(folder: BundleFolder, contents: FolderBundles) -> None:
    """Remove bundles that are damaged, and those that were replaced some time ago.

    Bundles appear whole, so that one which cannot be read is of no use to anybody.
    """
    damaged = [name for name in contents.unreadable() if folder.is_damaged(name)]
    folder.remove([*sorted(contents.replaced(datetime.now(UTC) - GRACE)), *damaged])


def _is_intact(bundle: Bundle) -> bool:
    """Whether its files and directories can be read."""
    try:
        _ = bundle.files
        for kind in bundle.kinds:
            bundle.series(kind)
    except FormatError:
        return False
    return True


def _ignore(_error: AlcidError) -> None:
    """A damaged bundle is merged away, and only then warned of."""
