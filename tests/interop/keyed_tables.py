"""Tables with a primary key that several systems use: their expected rows and their readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import alcid
from alcid.formats.binary_row import hash_rows
from alcid.types import DataType
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.paimon_writing import RowKind
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse
from tests.tables.paimon.known_rows import as_text

__all__ = ["ALL_READERS", "VECTORS", "KeyedTable", "Peers", "Row", "levels", "peers"]

VECTORS = {"deletion-vectors.enabled": "true"}
WRITE_ONLY = {"write-only": "true"}
ALL_READERS = frozenset({"java", "newest", "pypaimon", "rust"})

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Peers:
    """The other systems that read and write the tables."""

    java: JavaPaimon
    newest: JavaPaimon
    pypaimon: PyPaimon

    def named(self, who: str) -> JavaPaimon:
        return {"java": self.java, "newest": self.newest}[who]


@pytest.fixture(scope="session")
def peers(java_paimon: JavaPaimon, newest_paimon: JavaPaimon, pypaimon: PyPaimon) -> Peers:
    return Peers(java_paimon, newest_paimon, pypaimon)


def levels(path: Path, bucket: int | None = None) -> list[int]:
    """The level of every data file, of one bucket or of all; sorted."""
    entries = alcid.paimon(path).snapshot.state.entries
    return sorted(entry.file.level for entry in entries if bucket in (None, entry.bucket))


@dataclass
class KeyedTable:
    """A table that "we", "java" and "newest" write to, and its rows as a dict of keys."""

    path: Path
    peers: Peers
    columns: Mapping[str, str]
    keys: Sequence[str]
    options: Mapping[str, str]
    partitions: Sequence[str] = ()
    wins: Callable[[Row, Row], bool] = lambda _new, _old: True
    """Whether a new row replaces an older one with its key."""
    readers: frozenset[str] = ALL_READERS
    """The systems that can read such a table."""
    rows: dict[Key, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = {
            name: f"{kind} NOT NULL" if name in self.keys else kind
            for name, kind in self.columns.items()
        }
        self.peers.java.create(
            self.path,
            columns,
            partition_keys=self.partitions,
            primary_keys=self.keys,
            options=self.options,
        )
        self.rust = RustWarehouse(self.path.with_name(f"rust-{self.path.name}"))
        self.rust.link(self.path)
        self.table = alcid.paimon(self.path)

    # -- rows ----------------------------------------------------------------------------------

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as a writer takes them."""
        arrays = [
            pa.array([row[number] for row in rows], DataType.parse(kind).to_arrow())
            for number, kind in enumerate(self.columns.values())
        ]
        return pa.Table.from_arrays(arrays, names=list(self.columns))

    def _key(self, row: Row) -> Key:
        positions = [list(self.columns).index(name) for name in self.keys]
        return tuple(row[position] for position in positions)

    def _put(self, row: Row) -> bool:
        """Whether it replaces the older row."""
        old = self.rows.get(self._key(row))
        if old is not None and not self.wins(row, old):
            return False
        self.rows[self._key(row)] = row
        return True

    # -- what is done --------------------------------------------------------------------------

    def put(self, who: str, *rows: Row, write_only: bool = False) -> None:
        """Insert or replace rows."""
        for row in rows:
            self._put(row)
        self.write(who, rows, ["+I"] * len(rows), write_only=write_only)

    def remove(self, who: str, *rows: Row, write_only: bool = False) -> None:
        """Delete the rows with the keys of these."""
        for row in rows:
            self.rows.pop(self._key(row), None)
        self.write(who, rows, ["-D"] * len(rows), write_only=write_only)

    def write(
        self, who: str, rows: Sequence[Row], kinds: Sequence[RowKind], *, write_only: bool = False
    ) -> None:
        """Write rows of any kind; the model is left alone."""
        table = self.arrow(rows)
        if who == "we":
            kinded = table.append_column("what", pa.array(kinds, pa.string()))
            self.table.upsert(kinded, row_kind="what", write_only=write_only)
        else:
            options = WRITE_ONLY if write_only else None
            self.peers.named(who).write(self.path, table, kinds, options=options)

    def compact(self, who: str) -> None:
        if who == "we":
            self.table.compact()
        else:
            self.peers.named(who).compact(self.path)

    # -- what is seen --------------------------------------------------------------------------

    def check(self, *, compacted: bool = True) -> None:
        """Check that all see the rows; readers that ignore level 0 only if it is empty."""
        expected = as_text(self.arrow(list(self.rows.values())))
        for who in sorted({"java", "newest"} & self.readers):
            java = self.peers.named(who)
            assert as_text(java.read(self.path, merged=not compacted)) == expected, who
        merged = alcid.paimon(self.path, merge_on_read=True)
        assert as_text(merged.scan().to_arrow()) == expected
        if compacted:
            assert as_text(alcid.paimon(self.path).scan().to_arrow()) == expected
            if "pypaimon" in self.readers:
                assert as_text(self.peers.pypaimon.read(self.path)) == expected
            if "rust" in self.readers:
                assert as_text(self.rust.read()) == expected
        self.check_buckets()
        report = alcid.paimon(self.path).verify(progress=False)
        assert report.ok, str(report)

    def check_rows(self, *, who: str) -> None:
        """One of Java's readers and we see the rows: the quickest check."""
        expected = as_text(self.arrow(list(self.rows.values())))
        assert as_text(self.peers.named(who).read(self.path, merged=True)) == expected
        assert as_text(alcid.paimon(self.path).scan().to_arrow()) == expected

    def check_buckets(self) -> dict[Key, int]:
        """Check that each key is in one bucket, with its hash if it is dynamic; returns buckets."""
        pairs = self.peers.java.key_buckets(self.path, self.keys)
        buckets = dict(pairs)
        assert buckets.keys() == self.rows.keys()
        assert len(buckets) == len(pairs), "a key in two buckets"
        if self.options.get("bucket", "-1") == "-1":
            self._check_hashes(buckets)
        return buckets

    def _check_hashes(self, buckets: Mapping[Key, int]) -> None:
        indexes = self.peers.java.hash_indexes(self.path)
        for partition in {partition for partition, _ in indexes}:
            hashes = [
                number
                for (part, _), numbers in indexes.items()
                if part == partition
                for number in numbers
            ]
            assert len(hashes) == len(set(hashes)), "a hash in two buckets"
        for (key, bucket), number in zip(buckets.items(), self._hashes(buckets), strict=True):
            values = dict(zip(self.keys, key, strict=True))
            partition = "".join(f"{name}={values[name]}/" for name in self.partitions)
            assert number in indexes[partition, bucket], key

    def _hashes(self, keys: Iterable[Key]) -> list[int]:
        listed = list(keys)
        names = [name for name in self.keys if name not in self.partitions]
        types = [DataType.parse(self.columns[name]) for name in names]
        columns = [
            pa.array([key[list(self.keys).index(name)] for key in listed], kind.to_arrow())
            for name, kind in zip(names, types, strict=True)
        ]
        return hash_rows(columns, types).tolist() if listed else []
