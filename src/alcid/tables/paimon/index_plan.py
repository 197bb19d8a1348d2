"""Which indexes the data files of a Paimon table are to have, which they have, and what to do.

A file is indexed under the schema that it was written by: its container spells columns as that
schema does, and has the types of it. A column is the same as one of the table if their ids are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from alcid.bundle import Kind
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.formats.file_index.container import Container
from alcid.options import IndexSpec, default_options, find_column
from alcid.paimon_metadata.schema import Field, TableSchema
from alcid.storage import Storage
from alcid.tables.build_report import SkippedCounter
from alcid.tables.paimon.data_files import PlacedFile, place_files, table_paths
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.index_beginnings import index_sources
from alcid.tables.payloads import IndexName
from alcid.types import INDEX_TYPES, DataType

__all__ = [
    "Found",
    "Intent",
    "intents",
    "place_every",
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
) -> Callable[[int, tuple[str, ...] | None, str], tuple[Wanted, Mapping[Kind, str]]]:
    """What files of a schema, some columns and a format are to have, and what they cannot have."""
    table = files.schema
    ids = [table.field(find_column(spec.top_level, table.names)).id for spec in specs]

    @lru_cache(None)
    def wanted(
        schema: int, written: tuple[str, ...] | None, file_format: str
    ) -> tuple[Wanted, Mapping[Kind, str]]:
        own = {
            field.id: field
            for field in files.schemas[schema].fields
            if written is None or field.name in written
        }
        found: dict[IndexName, tuple[IndexSpec, DataType]] = {}
        refused: dict[Kind, str] = {}
        for spec, number in zip(specs, ids, strict=True):
            if number not in own:  # it is null in all rows
                continue
            try:
                one, data_type = _resolve(spec, own[number], file_format)
            except (ColumnError, UnsupportedError) as error:
                refused[Kind.index(spec.column, spec.index_type)] = str(error)
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
