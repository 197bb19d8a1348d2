"""A random table with a primary key: its columns, its options, and rows for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

import alcid
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.types import DataType
from tests.tables.paimon.keyed.upsert_model import DELETES, UpsertModel
from tests.tables.paimon.machine import Machine
from tests.tables.paimon.machine_table import NAMES
from tests.tables.paimon.random_predicates import KINDS, Row, draw_value

__all__ = ["UpsertTable"]

KEY_VALUES: dict[str, Callable[[int], Any]] = {
    "INT": lambda number: number * 7 - 30,
    "BIGINT": lambda number: (number - 9) * 2**33,
    "STRING": lambda number: f"a key of many letters {number:o}" if number % 3 else "ß" * number,
    "DECIMAL(9, 2)": lambda number: Decimal(number * 37 - 500).scaleb(-2),
    "DATE": lambda number: date(1969, 12, 20) + timedelta(days=number),
    "TIMESTAMP(6)": lambda number: datetime(1969, 12, 31) + timedelta(seconds=number, minutes=7),
}
"""The key of each number."""

PARTITIONS: dict[str, Sequence[Any]] = {"STRING": ("x", "a/b=c d", "é"), "INT": (1, -7)}
SEQUENCES = ("INT", "DOUBLE", "TIMESTAMP(6)")
VECTORS = {"deletion-vectors.enabled": "true"}


class UpsertTable(Machine):
    """A table with a primary key. No two rows have the same `id`: it shows which row is live."""

    partition_values: ClassVar[Mapping[str, Sequence[Any]]] = PARTITIONS

    def _create(self) -> TableSchema:
        source = self.source
        kinds = source.sample(list(KEY_VALUES), source.choice((1, 1, 1, 2)))
        keys = [(name, kind) for name, kind in zip(("k", "l"), kinds, strict=False)]
        partitions = []
        if source.random() < 0.4:
            partitions.append(("dt", source.choice(list(self.partition_values))))
        options = self._draw_options()
        sequence: list[tuple[str, str]] = []
        ignored: list[str] = []
        if source.random() < 0.5:
            sequence = [(name, source.choice(SEQUENCES)) for name in ("v", "w")]
            sequence = sequence[: source.choice((1, 1, 2))]
            options["sequence.field"] = ",".join(name for name, _ in sequence)
            if source.random() < 0.5:
                options["sequence.field.sort-order"] = "descending"
        kind_columns = []
        if source.random() < 0.2:
            kind_columns.append(("op", "STRING"))
            options["rowkind.field"] = "op"
        if source.random() < 0.1:
            options["ignore-delete"] = "true"
            ignored += DELETES
        elif source.random() < 0.1:
            options["ignore-update-before"] = "true"
            ignored.append("-U")
        values = [(name, source.choice(list(KINDS))) for name in NAMES[: source.randint(2, 3)]]
        columns = [*keys, *partitions, ("id", "BIGINT"), *sequence, *kind_columns, *values]
        source.shuffle(columns)
        if source.random() < 0.5:
            options |= self._index_options(dict(columns))
        self.key_columns = dict(keys)
        self.log.append(f"create {columns} with key {keys}, {partitions}, options={options}")
        schema = self._make(columns, [name for name, _ in partitions], options)
        self.model = UpsertModel(
            keys=tuple(schema.field(name).id for name in schema.primary_keys),
            sequence=tuple(schema.field(name).id for name, _ in sequence),
            descending="sequence.field.sort-order" in options,
            ignored=ignored,
        )
        self.next_key = 0
        return schema

    def _make(
        self, columns: Sequence[tuple[str, str]], partitions: Sequence[str], options: dict[str, str]
    ) -> TableSchema:
        schema = pa.schema([(name, DataType.parse(kind).to_arrow()) for name, kind in columns])
        made = alcid.create_table(
            self.path,
            schema,
            primary_key=[*partitions, *self.key_columns],
            partition_by=partitions,
            options=options,
        )
        return made.snapshot.schema

    def _draw_options(self) -> dict[str, str]:
        source = self.source
        options = {"manifest.merge-min-count": source.choice(["2", "4", "30"])}
        options |= source.choice(
            [
                *5 * [VECTORS],
                VECTORS | {"deletion-vectors.bitmap64": "true"},
                VECTORS | {"deletion-vectors.merge-on-read": "true"},
                VECTORS | {"write-only": "true"},
                {},
            ]
        )
        most = source.choice(["4", "20", "40"])
        options |= source.choice(
            [
                *({"bucket": count} for count in ("1", "1", "2", "3")),
                *2 * [{"bucket": "-1", "dynamic-bucket.target-row-num": most}],
                {
                    "bucket": "-1",
                    "dynamic-bucket.target-row-num": "3",
                    "dynamic-bucket.max-buckets": "2",
                },
                {
                    "bucket": "-1",
                    "dynamic-bucket.target-row-num": most,
                    "dynamic-bucket.initial-buckets": "2",
                },
            ]
        )
        options |= source.choice([{}, *({"num-levels": str(most)} for most in range(2, 7))])
        options |= source.choice([{}, {}, {"data-file.thin-mode": "true"}])
        options |= source.choice([{}, {}, {"index-file-in-data-file-dir": "true"}])
        options |= source.choice(
            [{}, *({"file-index.in-manifest-threshold": size} for size in ("1 b", "1 mb"))]
        )
        options |= source.choice(
            [{}, {}, *({"metadata.stats-mode": mode} for mode in ("none", "full"))]
        )
        return options

    @property
    def merges(self) -> bool:
        """Whether any read of the table sees level 0."""
        options = self.now.schema.options
        return not self.has_vectors or "deletion-vectors.merge-on-read" in options

    @property
    def is_lazy(self) -> bool:
        """Whether upserts leave rows on level 0."""
        return not self.has_vectors or "write-only" in self.now.schema.options

    @property
    def fixed_columns(self) -> set[str]:
        return {*super().fixed_columns, *self.key_columns, "v", "w", "op"}

    def draw_rows(self) -> list[Row]:
        """Some rows, with new keys or old ones, without some of the columns."""
        columns = self.now.columns
        optional = [name for name in columns if name not in self.fixed_columns]
        left_out = set(optional[:1]) if self.source.random() < 0.2 else set()
        if "v" in columns and self.source.random() < 0.1:
            left_out.add("v")
        share_of_new = self.source.choice((0.0, 0.3, 1.0))
        partitions = self.now.schema.partition_keys
        values = {
            name: self.source.sample(
                self.partition_values[columns[name]], self.source.choice((1, 1, 2))
            )
            for name in partitions
        }
        rows: list[Row] = []
        for _ in range(self.source.choice((0, 1, 5, 5, 20))):
            self._next_id += 1
            row: dict[str, Any] = {"id": self._next_id, **self._draw_key(share_of_new)}
            for name, kind in columns.items():
                if name in partitions:
                    row[name] = self.source.choice(values[name])
                elif name in ("v", "w") and name not in left_out:
                    row[name] = self.draw_sequence(kind)
                elif name not in row and name not in left_out and name != "op":
                    row[name] = draw_value(self.source, kind)
            rows.append(row)
        return rows

    def _draw_key(self, share_of_new: float) -> dict[str, Any]:
        number = self.source.randrange(max(self.next_key, 1))
        if self.source.random() < share_of_new:
            number = self.next_key
            self.next_key += 1
        return {
            name: KEY_VALUES[kind](number // (3 if position else 1))
            for position, (name, kind) in enumerate(self.key_columns.items())
        }

    def draw_sequence(self, kind: str) -> Any:
        """Often a key that existed before."""
        if self.source.random() < 0.1:
            return None
        number = self.source.randrange(6)
        if kind == "TIMESTAMP(6)":
            return datetime(1970, 1, 1) + timedelta(microseconds=number - 2)
        return number if kind == "INT" else [float("nan"), -0.0, 0.0, 1.5, -2.0, 7.0][number]
