"""Which indexes the data files of a Paimon table are to have, which they have, and what to do.

A file is indexed under the schema that it was written by: its container spells columns as that
schema does, and has the types of it. A column is the same as one of the table if their ids are.

The containers of data files, made by workers: what is kept is copied, the rest is built.

Which indexes are asked for: by the options of a Paimon table, or by those that a user gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
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
from alcid.index.build import IndexName, Payloads
from alcid.index.bundle import PayloadKind
from alcid.options import (
    ColumnNames,
    IndexSpec,
    default_options,
)
from alcid.storage import Storage
from alcid.storage.threads import in_order
from alcid.tables.engine import Task
from alcid.tables.paimon.data_files import (
    PlacedFile,
    open_data,
    place_files,
    read_columns,
    table_paths,
)
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.indexes import index_sources
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.tables.reports import SkippedCounter
from alcid.types import INDEX_TYPES, DataType

__all__ = [
    "Found",
    "IndexWork",
    "Intent",
    "Made",
    "intents",
    "place_every",
    "put_sidecar",
    "read_containers",
    "table_name",
]

Found = Container | FormatError | None
"""The container of a file, or why it cannot be read; None: there is none."""
Wanted = Mapping[IndexName, tuple[IndexSpec, DataType]]

# Paimon's Java reads moments of ORC files by the zone that it runs in, so that an index of ours
# could hide rows from it; and texts of a fixed length with the blanks behind them.
_NOT_IN_ORC = ("CHAR", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True, slots=True)
class Intent:
    """What to do with the container of a file."""

    placed: PlacedFile
    build: tuple[tuple[IndexSpec, DataType], ...] = ()
    """The indexes to build, as the file spells them, each with the type of its values."""
    keep: tuple[IndexName, ...] = ()
    """Those to copy."""


def place_every(files: PaimonFiles) -> tuple[list[PlacedFile], list[tuple[str, str]]]:
    """All live files, those of level 0 too; and names of files that are not read, with reasons."""
    paths = table_paths(files.schema, files.options)
    placed: list[PlacedFile] = []
    others: list[tuple[str, str]] = []
    for entry in files.state.entries:
        try:
            placed += place_files([entry], paths)
        except UnsupportedError as error:
            others.append((entry.file.name, str(error)))
    return placed, others


def read_containers(storage: Storage, files: Sequence[PlacedFile]) -> list[Found]:
    """The containers of files; their heads are read in one round."""
    found: list[Found] = []
    for source in index_sources(storage, files):
        if source is None or isinstance(source, FormatError):
            found.append(source)
            continue
        try:
            found.append(Container.open(source))
        except FormatError as error:
            found.append(error)
    return found


def table_name(column: str, own: TableSchema, table: TableSchema) -> str | None:
    """What the table calls a column, or a key of a map, of a file; None if it has it no more."""
    top_level = IndexSpec(column, "bsi", default_options("bsi")).top_level
    name = column if column in own.names else top_level
    if name not in own.names:
        return None
    found = table.by_id.get(own.field(name).id)
    return None if found is None else found.name + column[len(name) :]


def intents(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    specs: Sequence[IndexSpec],
    found: Sequence[Found],
    skipped: SkippedCounter,
    *,
    rebuild: bool,
) -> list[Intent]:
    """What is to be done, without those files that have all that they can have.

    Args:
        files: The table.
        placed: Its data files.
        specs: The indexes that they are to have; their columns are in the table.
        found: The containers of the files.
        skipped: Is told what cannot be built.
        rebuild: Build also what is there.

    What is not asked for is dropped, unless it is of a type that is not known here.
    """
    wanted_of = _wanted_by_schema(files, specs)
    made = []
    for one, container in zip(placed, found, strict=True):
        wanted, refused = wanted_of(one.file.schema_id, one.file.write_columns, one.format)
        for kind, reason in refused.items():
            skipped.add(kind, reason, one.path)
        has = _names(container)
        build = [name for name in wanted if rebuild or name not in has]
        left = [name for name in has if name not in build]
        keep = [name for name in left if name in wanted or name[1] not in INDEX_TYPES]
        is_useless = isinstance(container, FormatError)
        if build or len(keep) < len(has) or is_useless:
            made.append(Intent(one, tuple(wanted[name] for name in build), tuple(keep)))
    return made


def _names(container: Found) -> list[IndexName]:
    if not isinstance(container, Container):
        return []
    return [(entry.column, entry.index_type) for entry in container.entries]


def _wanted_by_schema(
    files: PaimonFiles, specs: Sequence[IndexSpec]
) -> Callable[[int, tuple[str, ...] | None, str], tuple[Wanted, Mapping[PayloadKind, str]]]:
    """What files of a schema, some columns and a format are to have, and what they cannot have."""
    table = files.schema
    names = ColumnNames(table.names)
    ids = [table.field(names.find(spec.top_level)).id for spec in specs]

    @lru_cache(None)
    def wanted(
        schema: int, written: tuple[str, ...] | None, file_format: str
    ) -> tuple[Wanted, Mapping[PayloadKind, str]]:
        own = {
            field.id: field
            for field in files.schemas[schema].fields
            if written is None or field.name in written
        }
        found: dict[IndexName, tuple[IndexSpec, DataType]] = {}
        refused: dict[PayloadKind, str] = {}
        for spec, number in zip(specs, ids, strict=True):
            if number not in own:  # it is null in all rows
                continue
            try:
                one, data_type = _resolve(spec, own[number], file_format)
            except (ColumnError, UnsupportedError) as error:
                refused[PayloadKind.index(spec.column, spec.index_type)] = str(error)
            else:
                found[one.column, one.index_type] = one, data_type
        return found, refused

    return wanted


def _resolve(spec: IndexSpec, field: Field, file_format: str) -> tuple[IndexSpec, DataType]:
    """An index as a file spells it, and the type of its values."""
    key = "" if spec.map_key is None else f"[{spec.map_key}]"
    found, data_type = replace(spec, column=field.name + key).resolve({field.name: field.data_type})
    if file_format == "orc" and data_type.root in _NOT_IN_ORC:
        raise UnsupportedError(f"column {found.column}: {data_type} of ORC files gets no index")
    return found, data_type


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
class IndexItem:
    """A data file whose container is to be made."""

    number: int
    """Its position in the plan."""
    intent: Intent
    first_number: int
    """What new index files are numbered from."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexWork:
    """Makes the containers of data files, for `Engine.map`."""

    storage: Storage
    threshold: int
    """A container of more bytes gets a file."""
    options: TableOptions

    def __call__(self, task: Task[Sequence[IndexItem]]) -> list[Made]:
        """Make the containers of a task, and write those that are files."""
        containers = []
        with closing(in_order(self._make, task.items, task.threads)) as results:
            for item, made in zip(task.items, results, strict=True):
                containers.append(made)
                task.report(1, item.intent.placed.file.rows)
        return containers

    def _make(self, index_item: IndexItem) -> Made:
        item, intent = index_item.number, index_item.intent
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
            name = put_sidecar(self.storage, intent.placed, index_item.first_number, data)
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
