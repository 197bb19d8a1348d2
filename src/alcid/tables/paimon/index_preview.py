"""What a build of a Paimon table does: which files lack which index, and which lose one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alcid.bundle import Kind
from alcid.formats.file_index.container import Container
from alcid.tables.build_preview import IndexFilesCounter
from alcid.tables.build_report import BuildReport, IndexFiles, SkippedCounter
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.index_plan import Found, Intent, table_name
from alcid.tables.payloads import IndexName

__all__ = ["lost_indexes", "preview"]


def preview(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    containers: Sequence[Found],
    plan: Sequence[Intent],
    skipped: SkippedCounter,
) -> BuildReport:
    """The report of a build that is not done.

    Args:
        files: The table.
        placed: Its data files that can be indexed.
        containers: What they have.
        plan: What there is to do.
        skipped: What cannot be built, as far as that is known.
    """
    missing = _counted(files, ((intent.placed, _built(intent)) for intent in plan))
    others = len(files.state.entries) - len(placed)
    return BuildReport(
        len(files.state.entries),
        len(plan),
        len(placed) - len(plan),
        others,
        sum(intent.placed.file.rows for intent in plan),
        0,
        None,
        0.0,
        skipped.found,
        dry_run=True,
        data_bytes=sum(intent.placed.file.size for intent in plan if intent.build),
        missing=missing,
        dropped=lost_indexes(files, placed, containers, plan),
    )


def lost_indexes(
    files: PaimonFiles,
    placed: Sequence[PlacedFile],
    containers: Sequence[Found],
    plan: Iterable[Intent],
) -> tuple[IndexFiles, ...]:
    """What files have and do not keep, by index.

    Args:
        files: The table.
        placed: Its data files that can be indexed.
        containers: What they have.
        plan: What is done.
    """
    has = {one.path: _names(found) for one, found in zip(placed, containers, strict=True)}
    return _counted(
        files,
        (
            (intent.placed, set(has[intent.placed.path]) - set(_built(intent)) - set(intent.keep))
            for intent in plan
        ),
    )


def _counted(
    files: PaimonFiles, found: Iterable[tuple[PlacedFile, Iterable[IndexName]]]
) -> tuple[IndexFiles, ...]:
    counter = IndexFilesCounter()
    for one, names in found:
        own = files.schemas[one.file.schema_id]
        for column, index_type in names:
            kind = Kind.index(table_name(column, own, files.schema) or column, index_type)
            counter.add(kind, one.file.rows, one.file.size)
    return counter.found


def _built(intent: Intent) -> list[IndexName]:
    return [(spec.column, spec.index_type) for spec, _ in intent.build]


def _names(found: Found) -> list[IndexName]:
    if not isinstance(found, Container):
        return []
    return [(entry.column, entry.index_type) for entry in found.entries]
