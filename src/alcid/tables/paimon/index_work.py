"""The containers of data files, made by workers: what is kept is copied, the rest is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, groupby

import pyarrow as pa

from alcid.errors import (
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    NameTakenError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.file_index.container import Container, write_container
from alcid.options import IndexSpec
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.engine import Share, Tell
from alcid.tables.in_order import in_order
from alcid.tables.paimon.data_files import PlacedFile, open_data, read_columns
from alcid.tables.paimon.index_plan import Found, Intent, read_containers
from alcid.tables.payloads import IndexName, Payloads
from alcid.types import DataType

__all__ = ["IndexWork", "Made", "put_sidecar"]

_TRIES = 20


@dataclass(frozen=True, slots=True)
class Made:
    """What a worker made of an intent."""

    item: int
    """The place of the intent."""
    failed: str = ""
    """Why nothing can be done."""
    is_same: bool = False
    """Whether the container is the one that was there."""
    embedded: bytes | None = None
    """A container for the manifest; None if there is a file, or no index."""
    sidecar: str | None = None
    """The name of a file that has the container."""
    size: int = 0
    """Bytes of the container."""
    skipped: Mapping[IndexName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class IndexWork:
    """The work on the containers of data files, for `Engine.map`: an item is an intent."""

    storage: Storage
    intents: Sequence[Intent]
    first_numbers: Sequence[int]
    """What new index files are numbered from, for each intent."""
    threshold: int
    """A container of more bytes gets a file."""
    options: TableOptions

    def __call__(self, share: Share, tell: Tell) -> list[Made]:
        """Make the containers of a share, and write those that are files."""
        found = []
        items = share.items.tolist()
        with closing(in_order(self._make, items, share.threads)) as results:
            for one in results:
                found.append(one)
                tell(1, self.intents[one.item].placed.file.rows)
        return found

    def _make(self, item: int) -> Made:
        intent = self.intents[item]
        try:
            built = _build(self.storage, intent, self.options)
            skipped = built.skipped
            (before,) = read_containers(self.storage, [intent.placed])
            payloads = built.built | _copies(before, intent)
            data = write_container(payloads) if payloads else b""
            if _is_same(before, data):
                return Made(item, is_same=True, skipped=skipped)
            if not data:
                return Made(item, skipped=skipped)
            if len(data) <= self.threshold:
                return Made(item, embedded=data, size=len(data), skipped=skipped)
            name = put_sidecar(self.storage, intent.placed, self.first_numbers[item], data)
            return Made(item, sidecar=name, size=len(data), skipped=skipped)
        except FileGoneError as error:  # compacted and expired meanwhile
            return Made(item, failed=str(error))
        except StorageError:
            raise  # not the file's fault, so that others would fail too
        except (FormatError, LimitError, UnsupportedError) as error:
            return Made(item, failed=str(error))


def _build(storage: Storage, intent: Intent, options: TableOptions) -> Payloads:
    """Read the columns, one at a time, and build their indexes."""
    made = Payloads(for_java=True)
    if not intent.build:
        return made
    scan = open_data(storage, intent.placed, options)
    rows, expected = sum(scan.group_rows), intent.placed.file.rows
    if rows != expected:
        raise FormatError("rows", file=scan.source.name, found=rows, expected=expected)
    wanted = sorted(intent.build, key=lambda one: (one[0].top_level, *_name(one[0])))
    for column, group in groupby(wanted, key=lambda one: one[0].top_level):
        some = list(group)
        try:
            values = read_columns(scan, [column], storage).column(0)
        except (ColumnError, UnsupportedError) as error:
            made.skipped.update({_name(spec): str(error) for spec, _ in some})
        else:
            made.build(_times(values, some[0][1]), some)
    return made


def _name(spec: IndexSpec) -> IndexName:
    return spec.column, spec.index_type


def _times(values: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """The values; times of day of ORC files, which are numbers there, as times."""
    is_number = data_type.root == "TIME" and pa.types.is_integer(values.type)
    return values.cast(pa.time32("ms")) if is_number else values


def _copies(before: Found, intent: Intent) -> dict[IndexName, bytes | None]:
    """The payloads that stay.

    Raises:
        FormatError: They are not there any more.
    """
    if not intent.keep:
        return {}
    if isinstance(before, FormatError):
        raise before
    entries = {} if before is None else {(e.column, e.index_type): e for e in before.entries}
    found: dict[IndexName, bytes | None] = {}
    for name in intent.keep:
        if before is None or name not in entries:
            raise FormatError(f"no {name[1]} of {name[0]!r}", file=intent.placed.path)
        section = None if entries[name].is_empty else before.section(entries[name])
        found[name] = None if section is None else section.read(0, section.length)
    return found


def _is_same(before: Found, data: bytes) -> bool:
    """Whether a file has this container already; empty for none."""
    if not isinstance(before, Container):
        return before is None and not data
    if not data:
        return not before.entries
    size = before.source.size
    return size == len(data) and before.source.read(0, size) == data


def put_sidecar(storage: Storage, placed: PlacedFile, first: int, data: bytes) -> str:
    """Write an index file under a name that is not taken, and return the name.

    A file that is there is passed over though it has the same bytes: what a build that was killed
    has left may be cleaned away at any time.

    Raises:
        NameTakenError: Every name was taken at the moment when it was tried.
    """
    lost = 0
    for number in count(first):
        name = f"{placed.file.name}-{number}.index" if number else f"{placed.file.name}.index"
        if storage.exists(placed.folder + name):
            continue
        try:
            storage.put(placed.folder + name, data)
        except NameTakenError:
            lost += 1
            if lost == _TRIES:  # not others, but a file system that writes halves
                raise
        else:
            return name
    raise AssertionError("numbers do not end")
