"""Rows to load and rows to upsert, and what a table then holds: made once, and kept."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from alcid._arrays import Int64Array
from benchmarks.queries.data import make_files

__all__ = ["BATCHES", "Batch", "Held", "Source", "Truth", "make_source"]


BATCHES = {
    "large": "upsert as many rows as a tenth of the table, half of the keys new",
    "spread": "upsert few rows, half of the keys new, the others from the whole table",
    "recent": "upsert few rows, no key new, all among those loaded last",
}
_MODULUS = 1009
"""Of the sum that takes both the key and a value of each row: it stays below 2**63."""
_KEYS_OF_A_ROW = 4
"""Of so many following numbers one is a key, see `make_files`; so the next one can be new."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are written in one go."""

    sources: tuple[Path, ...]
    ids: Int64Array
    users: npt.NDArray[np.int32]

    @classmethod
    def read(cls, sources: Sequence[Path]) -> Batch:
        """What its files hold, as far as checks need it."""
        rows = pq.read_table(sources, columns=["id", "user_id"])
        return cls(tuple(sources), rows["id"].to_numpy(), rows["user_id"].to_numpy())


@dataclass(frozen=True, slots=True)
class Held:
    """What is compared of a table: its rows, the sum of their keys, and of keys with values."""

    rows: int
    id_sum: int
    mixed: int

    @staticmethod
    def select(table: str) -> str:
        """The SQL statement that finds it."""
        return f"SELECT count(*), sum(id), sum((id % {_MODULUS}) * user_id) FROM {table}"


class Truth:
    """The rows of a table, as NumPy has them."""

    def __init__(self, rows: int) -> None:
        """Begin without rows, for the keys of a source of so many."""
        self._users = np.full(rows * _KEYS_OF_A_ROW, -1, np.int32)

    def upsert(self, batch: Batch) -> None:
        """The later row of a key stays."""
        self._users[batch.ids] = batch.users

    def held(self) -> Held:
        """What is compared."""
        ids = self.ids()
        mixed = (ids % _MODULUS) * self._users[ids]
        return Held(len(ids), int(ids.sum()), int(mixed.sum()))

    def ids(self) -> Int64Array:
        """The keys, ascending."""
        return np.flatnonzero(self._users >= 0)


@dataclass(frozen=True, slots=True)
class Source:
    """Files of rows in a folder; a table of fewer rows takes the first files."""

    base: Path
    rows: int
    files: int

    @property
    def small(self) -> int:
        """The rows of a small upsert."""
        return max(4, self.rows // 1000)

    def load(self, size: int) -> Batch:
        """The rows of a table of this size, which is a number of whole files."""
        paths = sorted((self.base / "parquet").glob("*.parquet"))
        return Batch.read(paths[: size * self.files // self.rows])

    def batch(self, size: int, name: str) -> Batch:
        """Rows to upsert to a table of this size: they are written unless they are there."""
        folder = self.base / "upserts" / f"{size}-{name}"
        if not folder.exists():
            making = folder.with_name(f"{folder.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            self._write(making, size, name)
            making.rename(folder)
        return Batch.read(sorted(folder.glob("*.parquet")))

    def _write(self, folder: Path, size: int, name: str) -> None:
        loaded = self.load(size)
        random = np.random.default_rng([size, list(BATCHES).index(name)])
        ids = self._ids(loaded.ids, name, random)
        donors = pq.read_table(loaded.sources[0])  # other rows' values
        rows = donors.take(random.integers(0, len(donors), len(ids))).set_column(
            0, "id", pa.array(ids)
        )
        # Two files where that is worth it, so that two readers can share them.
        half = len(rows) // 2 if name == "large" else len(rows)
        for number, part in enumerate((rows.slice(0, half), rows.slice(half))):
            if len(part):
                pq.write_table(part, folder / f"part-{number:05}.parquet", row_group_size=65_536)

    def _ids(self, loaded: Int64Array, name: str, random: np.random.Generator) -> Int64Array:
        """Keys in random order; those that are new are so after the other batches too."""
        if name == "recent":
            return random.choice(loaded[-10 * self.small :], self.small, replace=False)
        large, small = len(loaded) // 20, self.small // 2  # a half of each
        order = np.random.default_rng(len(loaded)).permutation(loaded) ^ 1
        place, count = (0, large) if name == "large" else (large, small)
        new, old = order[place : place + count], random.choice(loaded, count, replace=False)
        return random.permutation(np.concatenate([new, old]))


def make_source(base: Path, rows: int, files: int) -> Source:
    """Write the rows, unless they are there."""
    base.mkdir(parents=True, exist_ok=True)
    make_files(base / "parquet", rows, files)
    return Source(base, rows, files)
