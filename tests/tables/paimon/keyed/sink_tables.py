"""Tables that a sink writes to, and what others do to them meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.snapshot import snapshot_path
from tests.tables.paimon.small_tables import commit, create

COLUMNS = {"id": "BIGINT", "name": "STRING"}
OPTIONS = {"bucket": "2", "deletion-vectors.enabled": "true"}


def keyed_table(folder: Path, **options: str) -> PaimonTable:
    """A table with a key and two buckets, with rows 0 to 9; options have `_` for `-`."""
    table_options = OPTIONS | {key.replace("_", "-"): value for key, value in options.items()}
    table = create(folder, COLUMNS, primary_keys=["id"], options=table_options)
    table.upsert(rows_of(dict.fromkeys(range(10), "old")))
    return table


def rows_of(names: Mapping[int, str | None], kinds: Iterable[str] | None = None) -> pa.Table:
    """Rows by id; with a column of kinds if they are given."""
    columns = {
        "id": pa.array(names.keys(), pa.int64()),
        "name": pa.array(names.values(), pa.string()),
    }
    return pa.table(columns if kinds is None else columns | {"op": list(kinds)})


def names_of(table: PaimonTable) -> dict[int, str]:
    """What readers that ignore level 0 see now; each key exists once."""
    table.refresh()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* not yet compacted", AlcidWarning)
        table_rows = table.scan(order_by="id").to_arrow()
    names = dict(zip(table_rows["id"].to_pylist(), table_rows["name"].to_pylist(), strict=True))
    assert len(names) == table_rows.num_rows
    return names


def history(table: PaimonTable, first: int = 1) -> list[tuple[int, str, int]]:
    """Snapshots with kinds and identifiers."""
    snapshots = table.folder.snapshots
    known_snapshots = [snapshots.get(number) for number in snapshots.numbers() if number >= first]
    return [
        (snapshot.id, snapshot.commit_kind, snapshot.commit_identifier)
        for snapshot in known_snapshots
    ]


def commit_without_marks(table: PaimonTable) -> None:
    """A commit without row changes by a writer that drops the properties, as Paimon's Java does."""
    made = commit(table, Change(kind="ANALYZE", statistics="none"))
    path = snapshot_path(made.id)
    table.storage.replace(path, replace(made, statistics=None, properties=None).to_json())
    table.refresh()


def expire(table: PaimonTable, keep: int) -> None:
    """Remove all except for the latest snapshots."""
    numbers = table.folder.snapshots.numbers()[:-keep]
    table.storage.delete(map(snapshot_path, numbers))
