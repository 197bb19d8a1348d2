"""A random table under every combination of indexes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alcid
from alcid.types import INDEX_TYPES
from tests.scan.column_kinds import ColumnKind
from tests.scan.random_table import RandomTable


@dataclass(frozen=True)
class State:
    """A table, and how it is queried."""

    name: str
    table: Any
    use_indexes: bool = True
    deletions: bool = False
    """Whether rows are deleted."""


def index_options(
    source: random.Random, kinds: Mapping[str, ColumnKind], index_types: tuple[str, ...]
) -> dict[str, str | int | float]:
    """Indexes of these types on all columns that allow them."""
    options: dict[str, str | int | float] = {}
    for index_type in index_types:
        names = [name for name, kind in kinds.items() if index_type in kind.index_types]
        if not names:
            continue
        options[f"file-index.{index_type}.columns"] = ",".join(names)
        for name in names:
            for option, values in _VARIANTS.get(index_type, {}).items():
                value = source.choice(values)
                if value is not None:
                    options[f"file-index.{index_type}.{name}.{option}"] = value
    return options


_VARIANTS: dict[str, dict[str, tuple[str | int | None, ...]]] = {
    "bloom-filter": {"items": (None, 1, 100), "fpp": (None, "0.5")},
    "bitmap": {"version": (1, 2), "index-block-size": (None, 64)},
    "range-bitmap": {"chunk-size": (None, 0, 100)},
}


class States:
    """The states of one random table, with a folder of indexes each."""

    def __init__(self, source: random.Random, table: RandomTable, folder: Path) -> None:
        self._source = source
        self._table = table
        self._folder = folder
        self._partition_types: dict[str, Any] | None = None
        if source.random() < 0.5:
            self._partition_types = {
                name: kind.data_type for name, kind in table.partitions.items()
            }

    def open(self, name: str | None) -> Any:
        """The table with the indexes of this name; None for those next to the data."""
        return alcid.parquet(
            str(self._table.folder),
            index_path=None if name is None else str(self._folder / name),
            partition_types=self._partition_types,
            strict=self._source.random() < 0.5,
        )

    def build(self, name: str | None, index_types: tuple[str, ...], share: float = 1.0) -> Any:
        """The table with indexes on a share of the columns that allow them."""
        kinds = {
            column: kind
            for column, kind in self._table.stored.items()
            if self._source.random() < share
        }
        opened = self.open(name)
        options = index_options(self._source, kinds, index_types)
        if options:
            opened.build_indexes(options)
        return opened

    def build_each(self) -> Iterator[State]:
        """None, each type alone, and all: used or not, all files indexed."""
        yield State("no index", self.open("none"))
        for index_type in INDEX_TYPES:
            yield State(index_type, self.build(index_type, (index_type,)))
        everything = self.build(None, INDEX_TYPES)
        yield State("all indexes", everything)
        yield State("all indexes, unused", everything, use_indexes=False)

    def delete(self, state: State, positions: Mapping[str, list[int]], bits: Any) -> State:
        """The same with rows deleted: for each file, these positions."""
        vectors = {
            path: alcid.DeletionVector(rows, bits=bits) for path, rows in positions.items() if rows
        }
        hidden = state.table.with_deletions(vectors)
        name = f"{state.name}, rows deleted ({bits} bits)"
        return State(name, hidden, state.use_indexes, deletions=True)
