"""How rows are divided into row groups and pages, also by our own writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from alcid.tables import parquet_writer

__all__ = ["group_rows", "write_options", "writers_follow"]

_GROUP_ROWS = {"one": 1 << 20, "several": 16, "single rows": 1}
_PAGE_ROWS = {"one": 1 << 20, "small": 7, "single rows": 1}


def group_rows(levels: Mapping[str, str]) -> int:
    """The largest number of rows in a row group."""
    return _GROUP_ROWS[levels["groups"]]


def write_options(levels: Mapping[str, str]) -> dict[str, Any]:
    """The options for the pages of Arrow's writer."""
    return {
        # A page ends after each batch that makes it long enough.
        "write_batch_size": _PAGE_ROWS[levels["pages"]],
        "data_page_size": 1 << 20 if levels["pages"] == "one" else 1,
        "write_page_index": levels["page index"] == "yes",
    }


@contextmanager
def writers_follow(levels: Mapping[str, str]) -> Iterator[None]:
    """Let our own writers divide rows into groups and pages this way."""
    options = write_options(levels)

    @wraps(pq.ParquetWriter)
    def open_writer(*arguments: Any, **named: Any) -> pq.ParquetWriter:
        return pq.ParquetWriter(*arguments, **{**named, **options})

    arrow = SimpleNamespace(ParquetWriter=open_writer, ParquetFile=pq.ParquetFile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writer, "pq", arrow)
        patch.setattr(parquet_writer, "GROUP_ROWS", group_rows(levels))
        yield
