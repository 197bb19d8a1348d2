"""Scans over a network: how many requests and bytes they take, and what happens on failures."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import ParquetTable, StorageError
from alcid.storage import Storage
from tests.storage.conftest import KEYS, Opener, new_bucket
from tests.storage.fault_proxy import Fault, FaultProxy

FILES, ROWS = 3, 60_000
OPTIONS = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "id, class_id",
    "file-index.range-bitmap.columns": "score",
}


def rows_of(file: int) -> pa.Table:
    rng = np.random.default_rng(file)
    return pa.table(
        {
            "id": rng.permutation(ROWS) * FILES + file,
            "class_id": rng.integers(0, 50, ROWS).astype(np.int32),
            "score": rng.random(ROWS),
            "noise": pa.array([rng.bytes(100) for _ in range(ROWS)], pa.binary()),
        }
    )


@pytest.fixture
def bucket(moto_port: int, request: pytest.FixtureRequest) -> str:
    """A bucket with a table that the library of `open_s3` made."""
    return filled_bucket(moto_port, request.node.callspec.params["open_s3"])


@cache  # the tests only read it
def filled_bucket(moto_port: int, library: str) -> str:
    """A bucket with a table of three files of 7 MB, with its indexes."""
    name = new_bucket(moto_port)
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{moto_port}", "library": library}
    storage = Storage.open(f"s3://{name}/table", options)
    for file in range(FILES):
        data = io.BytesIO()
        pq.write_table(
            rows_of(file),
            data,
            row_group_size=20_000,
            write_batch_size=1000,
            data_page_size=1,
            write_page_index=True,
            use_dictionary=["class_id"],
            compression="none",
        )
        storage.put(f"part-{file}.parquet", data.getvalue())
    ParquetTable(storage).build_indexes(OPTIONS)
    return name


def test_a_row_is_found_with_few_requests_and_few_bytes(
    open_s3: Opener, s3: Storage, proxy: FaultProxy
) -> None:
    expected = rows_of(1).slice(777, 1)
    size = sum(s3.list(suffix=".parquet").sizes.tolist())
    assert size > 20 << 20
    storage = open_s3()
    table = ParquetTable(storage)
    opened = storage.traffic
    # Two listings; for the only bundle its size, its end and its head.
    assert (opened.lists, opened.requests <= 6) == (2, True), opened
    rows = table.scan(f"id = {expected['id'][0]}").to_arrow()
    assert rows.equals(expected)
    spent = storage.traffic - opened
    assert spent.bytes_read < 1 << 20, spent
    assert spent.requests <= 30, spent
    with proxy.watch() as seen:
        before = storage.traffic
        again = table.scan(f"id = {expected['id'][0]}").to_arrow()
        warm = storage.traffic - before
    assert again.equals(expected)
    assert len(seen) == warm.requests
    assert warm.requests < spent.requests


def test_a_count_from_an_index_reads_no_data(s3: Storage, proxy: FaultProxy) -> None:
    table = ParquetTable(s3)
    with proxy.watch() as seen:
        counted = table.count("class_id = 7")
    assert counted == sum(
        int((rows_of(file)["class_id"].to_numpy() == 7).sum()) for file in range(FILES)
    )
    assert [request for request in seen if ".parquet" in request] == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 503),
        Fault("status", 500, "InternalError"),
        Fault("truncate"),
        Fault("reset"),
        Fault("delay", seconds=0.2),
    ],
    ids=str,
)
def test_what_fails_once_is_tried_again(s3: Storage, proxy: FaultProxy, fault: Fault) -> None:
    expected = rows_of(2).slice(100, 1)
    table = ParquetTable(s3)
    proxy.fail(fault, times=2)
    rows = table.scan(f"id = {expected['id'][0]}").to_arrow()
    assert rows.equals(expected)


@pytest.mark.parametrize("kind", ["status", "truncate", "reset"])
def test_what_fails_for_ever_is_an_error_and_no_answer(
    s3: Storage, proxy: FaultProxy, kind: str
) -> None:
    table = ParquetTable(s3)
    proxy.fail(Fault(kind), times=10_000)  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        table.scan("score > 0.999").to_arrow()
    with pytest.raises(StorageError):
        table.count("class_id = 7 AND score < 0.5")
    proxy.reset()
    assert table.count("class_id IS NOT NULL") == FILES * ROWS
