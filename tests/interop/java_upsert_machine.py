"""Steps of Paimon's Java on a table with a primary key that we upsert to as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import alcid
from alcid.tables.paimon.metadata.schema import TableSchema
from tests.interop.java_machine import WRITE_ONLY, JavaMachine
from tests.tables.paimon.keyed.upsert_machine import Outcome, UpsertMachine
from tests.tables.paimon.machine import NOTHING

__all__ = ["JavaUpsertMachine"]


class JavaUpsertMachine(UpsertMachine, JavaMachine):
    """A table with a key that Java and we write to in turn."""

    # If a value has a slash, a compaction of Java's does not find its own files.
    partition_values: ClassVar[Mapping[str, Sequence[Any]]] = {
        "STRING": ("x", "y z"),
        "INT": (1, -7),
    }

    def _draw_options(self) -> dict[str, str]:
        options = super()._draw_options()
        options.pop("deletion-vectors.merge-on-read", None)  # it came with 2.0
        return options

    def _make(
        self, columns: Sequence[tuple[str, str]], partitions: Sequence[str], options: dict[str, str]
    ) -> TableSchema:
        if self.source.random() < 0.5:
            return super()._make(columns, partitions, options)
        keys = [*partitions, *self.key_columns]
        self.java.create(
            self.path,
            {name: f"{kind} NOT NULL" if name in keys else kind for name, kind in columns},
            partition_keys=partitions,
            primary_keys=keys,
            options=options,
        )
        return alcid.paimon(self.path).snapshot.schema

    def steps(self) -> dict[Callable[[], str], int]:
        return super().steps() | {
            self.java_upsert: 14,
            self.java_compact: 3,
            self.java_expire: 2,
        }

    def java_upsert(self) -> str:
        rows = [{**dict.fromkeys(self.now.columns), **row} for row in self.draw_rows()]
        if self.model.descending:  # even so, Java takes the greatest among the rows of one write
            names = self.now.schema.primary_keys
            rows = list({tuple(row[name] for name in names): row for row in rows}.values())
        kinds = self.draw_kinds(len(rows))
        if "op" in self.now.columns:
            rows = [{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)]
        write_only = self.source.random() < 0.3
        self.java.write(
            self.path,
            self.arrow(rows, self.now.columns),
            kinds,
            options=WRITE_ONLY if write_only else None,
        )
        self._killed = set()  # Java's snapshots do not show who was killed
        self.take(kinds, rows, Outcome.LEFT if write_only else Outcome.COMPACTED)
        some = [(kind, *row.values()) for kind, row in zip(kinds, rows, strict=True)]
        return f"{some}, {write_only=}"

    def draw_sequence(self, kind: str) -> Any:
        """No values that Java itself compares in two ways: NaN, and signed zeros."""
        drawn = super().draw_sequence(kind)
        return -3.5 if kind == "DOUBLE" and drawn is not None and not drawn > 0 else drawn

    def java_compact(self) -> str:
        if "write-only" in self.now.schema.options:
            return NOTHING
        return super().java_compact()
