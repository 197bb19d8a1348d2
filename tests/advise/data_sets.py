"""Five folders of Parquet files, each with a difficulty of its own, and queries on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = 32


def unequal(files: int = FILES, seed: int = 1) -> list[int]:
    """The rows of each file; the largest file has nearly four times as many as the smallest."""
    rng = np.random.default_rng(seed)
    return [int(count) for count in rng.integers(8_000, 30_000, files)]


def unique_ids(rng: np.random.Generator, counts: list[int]) -> Iterator[pa.Table]:
    """Every id occurs once, in any file."""
    ids = rng.permutation(sum(counts)) * 7
    for some in np.split(ids, np.cumsum(counts)[:-1]):
        yield pa.table({"id": some, "payload": rng.random(len(some))})


def clustered_times(rng: np.random.Generator, counts: list[int]) -> Iterator[pa.Table]:
    """Events in the order of their arrival; each session lasts for a while."""
    begin = 1_700_000_000_000_000
    for count in counts:
        steps = begin + np.cumsum(rng.integers(1, 2_000_000, count))
        begin = int(steps[-1])
        yield pa.table(
            {
                "at": pa.array(steps, pa.timestamp("us")),
                "session": steps // 60_000_000,
                "payload": rng.random(count),
            }
        )


def zipf_categories(rng: np.random.Generator, counts: list[int]) -> Iterator[pa.Table]:
    """A few values that occur everywhere, and many rare ones."""
    for count in counts:
        categories = np.minimum(rng.zipf(1.4, count), 50_000)
        yield pa.table({"category": pa.array(categories, pa.int32()), "payload": rng.random(count)})


def spread_flags(rng: np.random.Generator, counts: list[int]) -> Iterator[pa.Table]:
    """Few values; each page has all of them."""
    for count in counts:
        yield pa.table(
            {
                "flag": rng.random(count) < 0.3,
                "state": pa.array(rng.choice(["new", "paid", "sent", "lost"], count)),
                "payload": rng.random(count),
            }
        )


def texts_and_doubles(rng: np.random.Generator, counts: list[int]) -> Iterator[pa.Table]:
    """Addresses, every fifth of them null, and numbers with NaN among them."""
    for count in counts:
        pages = rng.integers(0, 40_000, count)
        urls = [
            None if row % 5 == 0 else f"https://example.org/articles/{page:07d}"
            for row, page in enumerate(pages.tolist())
        ]
        scores = rng.normal(50, 15, count)
        scores[rng.integers(0, count, 3)] = np.nan
        yield pa.table({"url": pa.array(urls), "score": scores, "payload": rng.random(count)})


@dataclass(frozen=True)
class DataSet:
    """The folder and its queries."""

    make: Callable[[np.random.Generator, list[int]], Iterator[pa.Table]]
    queries: tuple[Any, ...]
    index: dict[str, str]
    """The index that pays for each column; empty for none."""

    def write(self, folder: Path) -> Path:
        rng = np.random.default_rng(7)
        for number, table in enumerate(self.make(rng, unequal())):
            pq.write_table(
                table,
                folder / f"part-{number:02d}.parquet",
                row_group_size=15_000,
                max_rows_per_page=2_000,
                write_page_index=True,
            )
        return folder


SETS = {
    "unique ids": DataSet(
        unique_ids,
        ("id = 7", "id = 700000", "id = 1400000", "id = 2800000", "id IN (70, 77)"),
        {"id": "bloom-filter"},
    ),
    "clustered times": DataSet(
        clustered_times,
        (
            "at BETWEEN timestamp '2023-11-15 10:00:00' AND timestamp '2023-11-15 11:00:00'",
            "at >= timestamp '2023-11-20 00:00:00'",
            "session = 28340000",
        ),
        {"at": "", "session": ""},
    ),
    "Zipf categories": DataSet(
        zipf_categories,
        ("category = 200", "category = 300", "category = 500", "category = 1"),
        {"category": "bitmap"},
    ),
    "spread flags": DataSet(
        spread_flags,
        ("flag", "NOT flag", "state = 'paid'", "state IN ('new', 'lost')"),
        {"flag": "", "state": ""},
    ),
    "texts and doubles": DataSet(
        texts_and_doubles,
        (
            "url = 'https://example.org/articles/0000017'",
            "url = 'https://example.org/articles/0031000'",
            "url IS NULL",
            "score > 105",
            "score BETWEEN 50 AND 50.001",
        ),
        {"url": "bloom-filter", "score": "range-bitmap"},
    ),
}
