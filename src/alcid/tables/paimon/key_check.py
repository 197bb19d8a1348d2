"""Keys of a primary-key table: in order within files, apart within levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.tables.paimon.checked_table import CheckedTable
from alcid.tables.paimon.data_files import DataScan, PlacedFile
from alcid.tables.paimon.key_order import join_columns, rank_rows
from alcid.tables.paimon.keyed.key_files import KIND, NUMBER, key_name
from alcid.tables.paimon.keyed.row_kinds import are_deletes
from alcid.tables.paimon.sections import plan_sections

__all__ = ["check_keys", "check_levels"]


def check_keys(
    table: CheckedTable, placed: PlacedFile, scan: DataScan
) -> Iterator[tuple[str, str]]:
    """What is wrong with the keys of a file, and with what the manifest says of them."""
    file, own = placed.file, table.schema_of(placed)
    ids = [table.schema.field(name).id for name in table.schema.key_columns]
    names = [own.by_id[number].name for number in ids]
    kinds = [own.types[name] for name in names]
    rows = table.read(scan, [NUMBER, KIND, *map(key_name, names), *names])
    for name in (NUMBER, KIND):
        if name not in rows.column_names:
            yield "keys", f"no column {name}"
            return
    if not rows.num_rows:
        return
    deletes = int(are_deletes(rows.column(KIND).to_numpy()).sum())
    if file.delete_rows is not None and file.delete_rows != deletes:
        yield "rows that delete", f"found {file.delete_rows:,}, expected {deletes:,}"
    numbers = rows.column(NUMBER).to_numpy()
    least, most = int(numbers.min()), int(numbers.max())
    if not file.min_sequence <= least <= most <= file.max_sequence:
        told = f"found {file.min_sequence} to {file.max_sequence}"
        yield "sequence numbers", f"{told}, expected {least} to {most}"
    inside = [key_name(name) if key_name(name) in rows.column_names else name for name in names]
    keys = [
        rows.column(name).cast(kind.to_arrow()) for name, kind in zip(inside, kinds, strict=True)
    ]
    bounds = unpack_rows([file.min_key, file.max_key], kinds, file=placed.path)
    ranks = rank_rows(join_columns([bounds, keys]), rows.num_rows + 2)
    yield from _check_order(ranks[2:], int(ranks[0]), int(ranks[1]), level=file.level)


def _check_order(
    ranks: npt.NDArray[np.int64], least: int, most: int, *, level: int
) -> Iterator[tuple[str, str]]:
    # Some writers repeat a key on level 0; merging leaves one of them.
    steps = np.diff(ranks)
    wrong = np.flatnonzero(steps <= 0 if level else steps < 0)
    if len(wrong):
        yield "keys", f"row {int(wrong[0]) + 1} is not above the row before it"
    beyond = np.flatnonzero((ranks < least) | (ranks > most))
    if len(beyond):
        yield "keys", f"row {int(beyond[0])} is beyond the least or greatest of the manifest"


def check_levels(files: Sequence[PlacedFile], schema: TableSchema) -> Iterator[tuple[str, str]]:
    """Files of the same level of a bucket whose keys overlap: path and problem.

    Of the levels above 0 each is sorted throughout, else no writer of Java opens the bucket.
    """
    chosen = [one for one in files if one.file.level > 0]
    if not chosen:
        return
    names: dict[tuple[bytes, int, int], int] = {}
    levels = [
        names.setdefault((one.entry.partition, one.entry.bucket, one.file.level), len(names))
        for one in chosen
    ]
    kinds = [schema.types[name] for name in schema.key_columns]
    least = unpack_rows([one.file.min_key for one in chosen], kinds, file="keys of a manifest")
    most = unpack_rows([one.file.max_key for one in chosen], kinds, file="keys of a manifest")
    for section in plan_sections(levels, least, most):
        first, *others = (chosen[number] for number in section.tolist())
        for other in others:
            yield other.path, f"overlaps {first.file.name} on level {other.file.level}"
