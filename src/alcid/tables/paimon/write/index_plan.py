"""The indexes that the data files of a table have and shall have, and the tasks that build them.

A file is indexed under the schema that it was written with: its container has the column names and
types of that schema. Columns are matched with those of the table by field id. What stays is copied
from the old container, the rest is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count, groupby
from typing import Final

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
from alcid.index.build import BuiltIndexes, IndexName
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
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS
from alcid.tables.reports import SkippedCounter
from alcid.types import INDEX_TYPES, DataType

FileContainer = Container | FormatError | None
"""The container of a file, or why it cannot be read; None: it has none."""
Wanted = Mapping[IndexName, tuple[IndexSpec, DataType]]
ROUND: Final = 1024
"""Files whose containers are read at once: the first 16 KiB of each are in memory."""

# Paimon's Java reads timestamps of ORC files in the zone that it runs in, and pads CHAR: an index
# of ours could hide rows from it.
_NOT_IN_ORC = ("CHAR", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The change of the container of a data file."""

    placed: PlacedFile
    build: tuple[tuple[IndexSpec, DataType], ...] = ()
    """The indexes to build, with the column names of the file, and the types of their values."""
    keep: tuple[IndexName, ...] = ()
    """The indexes to copy."""
    lost: tuple[IndexName, ...] = ()
    """The indexes that are neither built nor copied."""


def indexable_files(files: PaimonFiles) -> tuple[list[PlacedFile], list[tuple[str, str]]]:
    """All live files, level 0 included; and names of files that cannot be read, with reasons."""
    paths = table_paths(files.schema, files.options)
    placed: list[PlacedFile] = []
    refused: list[tuple[str, str]] = []
    for entry in files.state.entries:
        try:
            placed += place_files([entry], paths)
        except UnsupportedError as error:
            refused.append((entry.file.name, str(error)))
    return placed, refused


def read_containers(storage: Storage, files: Sequence[PlacedFile]) -> list[FileContainer]:
    """The containers of files; their heads are read in one round."""
    containers: list[FileContainer] = []
    for source in index_sources(storage, files):
        if source is None or isinstance(source, FormatError):
            containers.append(source)
            continue
        try:
            containers.append(Container.open(source))
        except FormatError as error:
            containers.append(error)
    return containers


def containers_of(
    storage: Storage, files: Sequence[PlacedFile]
) -> Iterator[tuple[PlacedFile, FileContainer]]:
    """Files with their containers, which are read in rounds of `ROUND` files.

    A caller that keeps none of them takes the same memory for any number of files.
    """
    for first in range(0, len(files), ROUND):
        some = files[first : first + ROUND]
        yield from zip(some, read_containers(storage, some), strict=True)


def table_name(column: str, own: TableSchema, table: TableSchema) -> str | None:
    """The name in the table of a column, or map key, of a file; None if the table dropped it."""
    top_level = IndexSpec(column, "bsi", default_options("bsi")).top_level  # of any index type
    name = column if column in own.names else top_level
    if name not in own.names:
        return None
    current = table.by_id.get(own.field(name).id)
    return None if current is None else current.name + column[len(name) :]


def plan_files(
    files: PaimonFiles,
    containers: Iterable[tuple[PlacedFile, FileContainer]],
    specs: Sequence[IndexSpec],
    skipped: SkippedCounter,
    *,
    rebuild: bool,
) -> list[FilePlan]:
    """Plan the files that do not have exactly the indexes that they shall have.

    Args:
        files: The table.
        containers: Data files with their containers.
        specs: The indexes that they shall have; their columns are in the table.
        skipped: Counts what cannot be built.
        rebuild: Also build what exists.

    Other indexes are dropped, unless they are of an unknown type.
    """
    wanted_of = _wanted_by_schema(files, specs)
    plans = []
    # Most files need the same, so plans share it, in memory and when they are pickled.
    shared: dict[tuple[object, ...], FilePlan | None] = {}
    for file, container in containers:
        kind = file.file.schema_id, file.file.write_columns, file.format
        wanted, refused = wanted_of(*kind)
        for index, reason in refused.items():
            skipped.add(index, reason, file.path)
        existing = index_names(container)
        is_damaged = isinstance(container, FormatError)
        need = *kind, tuple(existing), is_damaged
        if need not in shared:
            build = [name for name in wanted if rebuild or name not in existing]
            left = [name for name in existing if name not in build]
            keep = tuple(name for name in left if name in wanted or name[1] not in INDEX_TYPES)
            lost = tuple(name for name in left if name not in keep)
            steps = tuple(wanted[name] for name in build), keep, lost
            shared[need] = FilePlan(file, *steps) if build or lost or is_damaged else None
        like = shared[need]
        if like is not None:
            plans.append(FilePlan(file, like.build, like.keep, like.lost))
    return plans


def index_names(container: FileContainer) -> list[IndexName]:
    """The indexes of a container; none if it is damaged."""
    if not isinstance(container, Container):
        return []
    return [(entry.column, entry.index_type) for entry in container.entries]


def _wanted_by_schema(
    files: PaimonFiles, specs: Sequence[IndexSpec]
) -> Callable[[int, tuple[str, ...] | None, str], tuple[Wanted, Mapping[PayloadKind, str]]]:
    """By schema, written columns and format: the indexes of a file, and those it cannot have."""
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
        possible: dict[IndexName, tuple[IndexSpec, DataType]] = {}
        refused: dict[PayloadKind, str] = {}
        for spec, number in zip(specs, ids, strict=True):
            if number not in own:  # it is null in all rows
                continue
            try:
                resolved, data_type = _resolve(spec, own[number], file_format)
            except (ColumnError, UnsupportedError) as error:
                refused[PayloadKind.index(spec.column, spec.index_type)] = str(error)
            else:
                possible[resolved.column, resolved.index_type] = resolved, data_type
        return possible, refused

    return wanted


def _resolve(spec: IndexSpec, field: Field, file_format: str) -> tuple[IndexSpec, DataType]:
    """An index with the column name of a file, and the type of its values."""
    key = "" if spec.map_key is None else f"[{spec.map_key}]"
    spec, data_type = replace(spec, column=field.name + key).resolve({field.name: field.data_type})
    if file_format == "orc" and data_type.root in _NOT_IN_ORC:
        raise UnsupportedError(f"column {spec.column}: {data_type} of ORC files gets no index")
    return spec, data_type


_TRIES = 20


@dataclass(frozen=True, slots=True)
class BuiltContainer:
    """The new container of a data file."""

    item: int
    """The position of its plan."""
    failed: str = ""
    """Why it could not be built."""
    is_same: bool = False
    """Whether it equals the old one."""
    embedded: bytes | None = None
    """The container, if it is embedded in the manifest."""
    sidecar: str | None = None
    """The name of the index file, if it is not."""
    size: int = 0
    """Bytes of the container."""
    skipped: Mapping[IndexName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class IndexItem:
    """A data file whose container is to be made."""

    number: int
    """Its position in the plan."""
    file_plan: FilePlan
    first_number: int
    """What new index files are numbered from."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what a task needs of the file: no statistics, no keys."""
        placed, plan = self.file_plan.placed, self.file_plan
        file = placed.file
        described = file.name, file.size, file.rows, file.extra_files, file.embedded_index
        steps = plan.build, plan.keep
        return _item, (self.number, placed.folder, *described, *steps, self.first_number)


def _item(
    number: int,
    folder: str,
    name: str,
    size: int,
    rows: int,
    extra_files: tuple[str, ...],
    embedded_index: bytes | None,
    build: tuple[tuple[IndexSpec, DataType], ...],
    keep: tuple[IndexName, ...],
    first_number: int,
) -> IndexItem:
    """An item as a task gets it."""
    file = DataFile(
        name=name,
        size=size,
        rows=rows,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=NO_STATS,
        min_sequence=0,
        max_sequence=0,
        schema_id=0,
        level=0,
        extra_files=extra_files,
        embedded_index=embedded_index,
    )
    placed = PlacedFile(ManifestEntry(ADD, EMPTY, 0, 0, file), folder)
    return IndexItem(number, FilePlan(placed, build, keep), first_number)


@dataclass(frozen=True, slots=True, eq=False)
class IndexWork:
    """Makes the containers of data files, for `Engine.map`."""

    storage: Storage
    threshold: int
    """A container of more bytes gets a file."""
    options: TableOptions

    def __call__(self, task: Task[Sequence[IndexItem]]) -> list[BuiltContainer]:
        """Make the containers of a task, and write those that are files."""
        containers = []
        with closing(in_order(self._make, task.items, task.threads)) as results:
            for item, made in zip(task.items, results, strict=True):
                containers.append(made)
                task.report(1, item.file_plan.placed.file.rows)
        return containers

    def _make(self, index_item: IndexItem) -> BuiltContainer:
        item, file_plan = index_item.number, index_item.file_plan
        try:
            built = _build(self.storage, file_plan, self.options)
            skipped = built.skipped
            (before,) = read_containers(self.storage, [file_plan.placed])
            payloads = built.built | _copies(before, file_plan)
            data = write_container(payloads) if payloads else b""
            if _is_same(before, data):
                return BuiltContainer(item, is_same=True, skipped=skipped)
            if not data:
                return BuiltContainer(item, skipped=skipped)
            if len(data) <= self.threshold:
                return BuiltContainer(item, embedded=data, size=len(data), skipped=skipped)
            name = put_sidecar(self.storage, file_plan.placed, index_item.first_number, data)
            return BuiltContainer(item, sidecar=name, size=len(data), skipped=skipped)
        except FileGoneError as error:  # compacted and expired meanwhile
            return BuiltContainer(item, failed=str(error))
        except StorageError:
            raise  # not due to this file: others would fail, too
        except (FormatError, LimitError, UnsupportedError) as error:
            return BuiltContainer(item, failed=str(error))


def _build(storage: Storage, file_plan: FilePlan, options: TableOptions) -> BuiltIndexes:
    """Read the columns, one at a time, and build their indexes."""
    made = BuiltIndexes(for_java=True)
    if not file_plan.build:
        return made
    scan = open_data(storage, file_plan.placed, options)
    rows, expected = sum(scan.group_rows), file_plan.placed.file.rows
    if rows != expected:
        raise FormatError("rows", file=scan.source.name, found=rows, expected=expected)
    wanted = sorted(file_plan.build, key=lambda one: (one[0].top_level, *_name(one[0])))
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


def _copies(before: FileContainer, file_plan: FilePlan) -> dict[IndexName, bytes | None]:
    """The payloads of the indexes to copy.

    Raises:
        FormatError: One does not exist any more.
    """
    if not file_plan.keep:
        return {}
    if isinstance(before, FormatError):
        raise before
    entries = {} if before is None else {(e.column, e.index_type): e for e in before.entries}
    payloads: dict[IndexName, bytes | None] = {}
    for name in file_plan.keep:
        if before is None or name not in entries:
            raise FormatError(f"no {name[1]} of {name[0]!r}", file=file_plan.placed.path)
        section = None if entries[name].is_empty else before.section(entries[name])
        payloads[name] = None if section is None else section.read(0, section.length)
    return payloads


def _is_same(before: FileContainer, data: bytes) -> bool:
    """Whether a file already has a container of these bytes; empty: none."""
    if not isinstance(before, Container):
        return before is None and not data
    if not data:
        return not before.entries
    size = before.source.size
    return size == len(data) and before.source.read(0, size) == data


def put_sidecar(storage: Storage, placed: PlacedFile, first: int, data: bytes) -> str:
    """Write an index file under a free name, and return the name.

    An existing file is not used although it may have the same bytes: `clean` may remove at any time
    what a killed build has left.

    Raises:
        NameTakenError: Every name was taken when it was tried.
    """
    taken = 0
    for number in count(first):
        name = f"{placed.file.name}-{number}.index" if number else f"{placed.file.name}.index"
        if storage.exists(placed.folder + name):
            continue
        try:
            storage.put(placed.folder + name, data)
        except NameTakenError:
            taken += 1
            if taken == _TRIES:  # not by others, but by a file system that writes partial files
                raise
        else:
            return name
    raise AssertionError("numbers do not end")
