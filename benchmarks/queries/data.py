"""The rows: made once, kept in a folder that git does not see."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import FileLayout, read_layout
from alcid.formats.source import FileSource

__all__ = ["CLASSES", "USERS", "Rows", "load_rows", "make_files"]

USERS, CLASSES = 1_000_000, 50
_SEED = 7
_FIRST, _LAST = 1_700_000_000_000_000, 1_760_000_000_000_000  # microseconds: 2023 to 2025


@dataclass(frozen=True, slots=True)
class Rows:
    """What answers are checked against."""

    folder: Path
    starts: Int64Array
    """The first row of each file, then the number of rows."""
    ids: Int64Array
    users: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    layouts: tuple[FileLayout, ...]


def make_files(folder: Path, rows: int, files: int) -> None:
    """Write random rows in random order, without nulls, unless they are there.

    Row groups of 65,536 rows, pages of at most 2,048, an offset index for every column.
    """
    if folder.exists():
        return
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    random = np.random.default_rng(_SEED)
    ids = random.permutation(rows) * 4 + random.integers(0, 4, rows)
    starts = np.linspace(0, rows, files + 1, dtype=np.int64).tolist()
    for file, (start, end) in enumerate(pairwise(starts)):
        pq.write_table(
            _table(ids[start:end], random),
            making / f"part-{file:05}.parquet",
            row_group_size=65_536,
            write_batch_size=2_048,
            data_page_size=1,  # a page ends with each batch
            write_page_index=True,
            compression="snappy",
            use_dictionary=["class_id"],
        )
    making.rename(folder)


def _table(ids: Int64Array, random: np.random.Generator) -> pa.Table:
    count = len(ids)
    users = pa.array(random.integers(0, USERS, count, np.int32))
    padded = pc.utf8_lpad(users.cast(pa.string()), 7, "0")
    return pa.table(
        {
            "id": ids,
            "user_id": users,
            "class_id": random.integers(0, CLASSES, count, np.int32),
            "score": random.random(count) * 100,
            "ts": pa.array(random.integers(_FIRST, _LAST, count), pa.timestamp("us")),
            "name": pc.binary_join_element_wise("user_", padded, ""),
        }
    )


def load_rows(folder: Path) -> Rows:
    """Read what answers are checked against, and where the pages are."""
    paths = sorted(folder.glob("*.parquet"))
    counts = [pq.read_metadata(path).num_rows for path in paths]
    table = pq.read_table(paths, columns=["id", "user_id", "class_id", "score"])
    return Rows(
        folder,
        np.cumsum([0, *counts]),
        table["id"].to_numpy(),
        table["user_id"].to_numpy(),
        table["class_id"].to_numpy(),
        table["score"].to_numpy(),
        tuple(_layout(path) for path in paths),
    )


def _layout(path: Path) -> FileLayout:
    with FileSource(path) as source:
        return read_layout(source)
