"""File indexes that are not what their data says, built anew: those of these files, and no other.

An index is built again by the options that its bytes show, one that cannot be of its file is
dropped. Where nothing of a container can be read, the options of the table say what it is to have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.formats.file_index.container import Container, Entry
from alcid.formats.file_index.keys import key_type
from alcid.options import IndexOptions, IndexSpec, default_options
from alcid.tables.build_report import SkippedCounter
from alcid.tables.paimon.asked_indexes import table_specs
from alcid.tables.paimon.building import make_swaps
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.index_plan import (
    Found,
    Intent,
    intents,
    place_every,
    read_containers,
    table_name,
)
from alcid.tables.paimon.index_swap import Swap
from alcid.tables.repair_report import Mended
from alcid.tables.stored_options import stored_options
from alcid.tables.verify_report import Finding
from alcid.types import INDEX_TYPES, DataType

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["IndexRepair", "is_of_index", "mend_indexes"]

_CONTAINER = "index"
"""What `verify` calls a container that cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexRepair:
    """A data file with other indexes; nothing is committed."""

    swap: Swap
    mended: tuple[Mended, ...]


def is_of_index(finding: Finding) -> bool:
    """Whether something is wrong with a file index."""
    kind, of, _ = finding.what.partition(" of ")
    return finding.what == _CONTAINER or (bool(of) and kind in INDEX_TYPES)


def mend_indexes(table: PaimonTable, wrong: Mapping[str, Sequence[Finding]]) -> list[IndexRepair]:
    """Build the indexes that are wrong; files whose data cannot be read are passed over.

    Args:
        table: The table.
        wrong: What was found, by the paths of data files.
    """
    files = table.snapshot
    placed = [one for one in place_every(files)[0] if one.path in wrong]
    plan = [
        _intent(files, one, container, {finding.what for finding in wrong[one.path]})
        for one, container in zip(placed, read_containers(table.storage, placed), strict=True)
    ]
    threshold = files.options.file_index_in_manifest_threshold
    _, swaps = make_swaps(table, plan, threshold, progress=False)
    intents_of = {one.placed.path: one for one in plan}
    return [
        IndexRepair(
            swap,
            tuple(
                Mended.of(finding, _done(intents_of[swap.placed.path], finding.what, files))
                for finding in wrong[swap.placed.path]
            ),
        )
        for swap in swaps
    ]


def _intent(files: PaimonFiles, placed: PlacedFile, found: Found, wrong: Collection[str]) -> Intent:
    """What to build for a file, and what to keep of what it has."""
    if not isinstance(found, Container):
        specs, _ = table_specs(files.schema)
        return Intent(placed, _built(files, placed, specs))
    own = files.schemas[placed.file.schema_id]
    specs, keep = [], []
    for entry in found.entries:
        column = table_name(entry.column, own, files.schema)
        is_known = entry.index_type in INDEX_TYPES
        label = f"{entry.index_type} of {column or entry.column!r}"
        if not is_known or (label not in wrong and _CONTAINER not in wrong):
            keep.append((entry.column, entry.index_type))
        elif column is not None:
            options = _options(found, entry, own.types)
            specs.append(IndexSpec(column, entry.index_type, options))
    return Intent(placed, _built(files, placed, specs), tuple(keep))


def _built(
    files: PaimonFiles, placed: PlacedFile, specs: Sequence[IndexSpec]
) -> tuple[tuple[IndexSpec, DataType], ...]:
    """Indexes as the file spells them, as far as it can have them."""
    made = intents(files, [placed], specs, [None], SkippedCounter(), rebuild=True)
    return made[0].build if made else ()


def _options(container: Container, entry: Entry, types: Mapping[str, DataType]) -> IndexOptions:
    """The options of an index, as far as its bytes show them."""
    try:
        spec = IndexSpec(entry.column, entry.index_type, default_options(entry.index_type))
        _, data_type = spec.resolve(types)
        payload = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
        return stored_options(entry.index_type, payload, key_type(data_type))
    except (ColumnError, FormatError, UnsupportedError):
        return default_options(entry.index_type)


def _done(intent: Intent, what: str, files: PaimonFiles) -> str:
    own = files.schemas[intent.placed.file.schema_id]
    built = {
        f"{spec.index_type} of {table_name(spec.column, own, files.schema)!r}"
        for spec, _ in intent.build
    }
    return "built anew" if what in built or (what == _CONTAINER and built) else "dropped"
