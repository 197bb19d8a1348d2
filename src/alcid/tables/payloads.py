"""Indexes of the columns of one file, from its rows: what goes into a container."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa

from alcid.errors import ColumnError, LimitError, UnsupportedError
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.column import KeyColumn, map_key_column, read_column
from alcid.options import IndexSpec
from alcid.types import DataType

__all__ = ["IndexName", "Payloads", "build_payloads"]

IndexName: TypeAlias = tuple[str, str]
"""The column, which may be a key of a map (`tags[color]`), and the type of an index."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """What was built of a file, and what was not."""

    built: dict[IndexName, bytes | None] = field(default_factory=dict)
    """None: there is nothing to be written, as of a key of a map in a file without rows."""
    skipped: dict[IndexName, str] = field(default_factory=dict)
    """Why an index was not built."""
    for_java: bool = False
    """Whether Paimon's Java reads them: then no range-bitmap is built of a column without a value,
    of which Java (1.4.2, 2.0.0) takes the first and the last row for all that are null."""

    def build(self, values: pa.ChunkedArray, wanted: Iterable[tuple[IndexSpec, DataType]]) -> None:
        """Build indexes of one column, or of keys of the map that it is.

        Args:
            values: The column.
            wanted: Indexes in the spelling of the file, and the types of their values; those of a
                key of a map one after the other.
        """
        for column, same in groupby(wanted, key=lambda one: one[0].column):
            self._build_same(column, values, list(same))

    def _build_same(
        self, column: str, values: pa.ChunkedArray, wanted: Sequence[tuple[IndexSpec, DataType]]
    ) -> None:
        keys: KeyColumn | None = None
        for spec, data_type in wanted:
            name = column, spec.index_type
            if spec.map_key is not None and not len(values):
                self.built[name] = None
                continue
            try:
                if keys is None:
                    key = spec.map_key
                    array = values if key is None else map_key_column(values, key)
                    keys = read_column(array, data_type)
                if self.for_java and spec.index_type == "range-bitmap" and not len(keys.keys):
                    self.skipped[name] = "there is no value, and Paimon would not find all nulls"
                    continue
                self.built[name] = BUILDERS[spec.index_type](keys, **asdict(spec.options))
            except (UnsupportedError, LimitError) as error:  # of a value, or of too many
                self.skipped[name] = str(error)


def build_payloads(
    read: Callable[[str], pa.ChunkedArray],
    types: Mapping[str, DataType],
    specs: Iterable[IndexSpec],
) -> Payloads:
    """Build the indexes of a file of a Paimon table; of its columns one at a time is in memory.

    Args:
        read: Gives all values of a column.
        types: The columns of the file.
        specs: The indexes to build; see `alcid.options.parse_options`.

    >>> from alcid.options import parse_options
    >>> rows = pa.table({"id": [3, 1, 2]})
    >>> specs = parse_options({"file-index.bsi.columns": "id", "file-index.bitmap.columns": "no"})
    >>> made = build_payloads(rows.column, {"id": DataType("BIGINT")}, specs)
    >>> list(made.built), list(made.skipped)
    ([('id', 'bsi')], [('no', 'bitmap')])
    """
    made = Payloads(for_java=True)
    found: list[tuple[IndexSpec, DataType]] = []
    for spec in specs:
        try:
            found.append(spec.resolve(types))
        except (ColumnError, UnsupportedError) as error:
            made.skipped[spec.column, spec.index_type] = str(error)
    found.sort(key=lambda one: (one[0].top_level, one[0].column, one[0].index_type))
    for name, wanted in groupby(found, key=lambda one: one[0].top_level):
        made.build(read(name), wanted)
    return made
