"""The rows that a table should hold, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from alcid.tables.paimon.metadata.schema import TableSchema
from tests.tables.paimon.random_predicates import Question, Row

__all__ = ["Rows", "as_text"]


@dataclass(frozen=True)
class Rows:
    """All rows of a table at some time, by the ids of its columns."""

    schema: TableSchema
    rows: Sequence[Mapping[int, Any]] = ()

    @property
    def columns(self) -> dict[str, str]:
        return {field.name: str(field.data_type) for field in self.schema.fields}

    def named(self) -> list[Row]:
        return [
            {field.name: row.get(field.id) for field in self.schema.fields} for row in self.rows
        ]

    def without(self, gone: Question) -> Rows:
        pairs = zip(self.rows, self.named(), strict=True)
        return replace(self, rows=[row for row, named in pairs if not gone.matches(named)])

    def with_rows(self, more: Sequence[Row]) -> Rows:
        numbers = {field.name: field.id for field in self.schema.fields}
        added = [{numbers[name]: value for name, value in row.items()} for row in more]
        return replace(self, rows=[*self.rows, *added])


def as_text(rows: Sequence[Row] | pa.Table) -> list[str]:
    """Rows as text, sorted; so that NaN is NaN, and 0.0 is not -0.0."""
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr(list(row.values())) for row in listed)
