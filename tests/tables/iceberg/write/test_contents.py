"""Statistics files are written as streams: what stays the same is copied by S3 or by the kernel."""

from __future__ import annotations

import hashlib
import io
import pickle
import random
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid.errors import StorageError
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.source import BytesSource
from alcid.formats.theta import ThetaSketch
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    FileEntry,
    PayloadKind,
    merge,
    merging,
    plan_merge,
)
from alcid.index.bundle.writer import Amendment, amend
from alcid.storage import Meter, new_file
from alcid.storage.s3_upload import IN_FLIGHT, LEAST_PART
from alcid.tables.engine import Task, Threads
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.write import contents, distinct_values
from alcid.tables.iceberg.write import publish as publishing
from alcid.tables.iceberg.write.contents import Amended, Merged, write_content
from alcid.tables.iceberg_table import IcebergTable
from tests.storage.conftest import KEYS, bucket, moto_port
from tests.tables.iceberg.memory_catalog import MemoryCatalog

__all__ = ["bucket", "moto_port"]

MB = 1 << 20
KIND = PayloadKind.index("id", "bloom-filter")
SKETCH = ThetaSketch.of(pa.array(range(1000))).to_bytes()


class Recorder(Threads):
    """An engine whose tasks are sent elsewhere: what they get and give is pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[int] = []

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Any,
        report: Any = None,  # noqa: ARG002
    ) -> list[Any]:
        sent = pickle.dumps((function, items))
        self.items.append(len(sent))
        assert len(sizes) == len(items)
        called, own = pickle.loads(sent)
        return [pickle.loads(pickle.dumps(called(Task(own))))]


@pytest.fixture(params=["disk", "s3", "s3-without-s3fs"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str]:
    """Files of a table, and the folder of its metadata."""
    if request.param == "disk":
        return FileIO(), str(tmp_path / "metadata")
    if request.param == "s3-without-s3fs":
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")

        def missing(_scheme: str) -> Any:
            raise alcid.UnsupportedError("s3fs is not installed")

        monkeypatch.setattr("alcid.storage.fsspec_files._file_system_class", missing)
    port, name = request.getfixturevalue("moto_port"), request.getfixturevalue("bucket")
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{port}"}
    return FileIO(options), f"s3://{name}/t/metadata"


def bundle_of(files: Sequence[int], size: int) -> bytes:
    data = io.BytesIO()
    with BundleWriter(data, snapshot_id=7, sequence_number=3) as writer:
        for number in files:
            row = writer.add_file(FileEntry(f"f{number:03}", 1, "", 5))
            writer.add(row, KIND, random.Random(number).randbytes(size))
    return data.getvalue()


def sketch(field: int) -> tuple[Blob, bytes]:
    return Blob(THETA_SKETCH, (field,), 7, 3, 0, 0, "zstd", {"ndv": "1000"}), SKETCH


def read(file_io: FileIO, path: str) -> bytes:
    source = file_io.source(path)
    return source.read(0, source.size)


def is_copied(file_io: FileIO, folder: str) -> bool:
    """Whether ranges are copied there."""
    storage, _ = file_io.find(f"{folder}/x")
    try:
        return storage._draft("probe").copies
    finally:
        storage.delete(["probe"])


def test_a_sketch_is_added_without_the_bytes_of_indexes(lake: tuple[FileIO, str]) -> None:
    file_io, folder = lake
    data = bundle_of(range(6), 5 * MB)
    file_io.put(f"{folder}/1-alcid.stats", data)
    expected = io.BytesIO()
    amend(BytesSource(data), expected, keep=lambda _: False, add=[sketch(1)])
    engine = Recorder()
    with Meter() as meter:
        source = f"{folder}/1-alcid.stats", len(data)
        content = Amended.of(file_io, source, add=[sketch(1)])
        planned = meter.snapshot()
        written = write_content(content, file_io, f"{folder}/7-", engine)
    traffic = meter.snapshot() - planned
    assert read(file_io, written.path) == expected.getvalue()
    assert written.path.endswith("-alcid.stats")
    assert planned.bytes_read < 100_000  # the footer
    assert engine.items[0] < 20_000
    assert content.size > 30 * MB
    if is_copied(file_io, folder):
        least = LEAST_PART if folder.startswith("s3") else 0
        assert traffic.bytes_read < least + 100_000
        assert traffic.bytes_written < least + 100_000
    else:
        assert traffic.bytes_written == len(expected.getvalue())
    assert PuffinReader(file_io.source(written.path)).footer_size == written.footer_size


def test_staged_parts_are_assembled_without_their_bytes_on_s3(lake: tuple[FileIO, str]) -> None:
    file_io, folder = lake
    parts = [bundle_of(range(4), 3 * MB), bundle_of(range(4, 9), 3 * MB)]
    paths = [f"{folder}/_alcid/{number}.puffin" for number in range(2)]
    for path, data in zip(paths, parts, strict=True):
        file_io.put(path, data)
    opened = [Bundle.open(file_io.source(path)) for path in paths]
    names = [f"f{number:03}" for number in range(9)]
    bundles = BundleSet(opened, names, np.ones(9, np.int64), [""] * 9)
    expected = io.BytesIO()
    merge(bundles, expected, snapshot_id=8, blobs=[sketch(2)])
    plan = plan_merge(bundles, snapshot_id=8, blobs=[sketch(2)])
    content = Merged(plan, tuple((bundle.source.name, bundle.source.size) for bundle in opened))
    engine = Recorder()
    with Meter() as meter:
        written = write_content(content, file_io, f"{folder}/8-", engine)
    assert read(file_io, written.path) == expected.getvalue()
    assert engine.items[0] < 20_000
    traffic = meter.snapshot()
    if folder.startswith("s3") and is_copied(file_io, folder):
        assert traffic.bytes_read < 2 * LEAST_PART + 100_000
        assert traffic.bytes_written < 2 * LEAST_PART + 100_000
    else:
        assert traffic.bytes_written == len(expected.getvalue())


def test_a_statistics_file_is_assembled_in_bounded_memory(
    lake: tuple[FileIO, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing can be copied, and everything passes through the task."""
    monkeypatch.setattr(new_file, "PART_BYTES", LEAST_PART)
    monkeypatch.setattr(new_file, "COPY_LEAST", 1 << 40)
    monkeypatch.setattr(merging, "ROUND_BYTES", LEAST_PART)
    file_io, folder = lake
    for number in range(2):
        path = f"{folder}/_alcid/{number}.puffin"
        file_io.put(path, bundle_of(range(number, 60, 2), MB))
    opened = [Bundle.open(file_io.source(f"{folder}/_alcid/{n}.puffin")) for n in range(2)]
    names = [f"f{number:03}" for number in range(60)]
    bundles = BundleSet(opened, names, np.ones(60, np.int64), [""] * 60)
    sources = tuple((bundle.source.name, bundle.source.size) for bundle in opened)
    content = Merged(plan_merge(bundles), sources)
    write_content(content, file_io, f"{folder}/warm-", Threads())
    tracemalloc.start()
    written = write_content(content, file_io, f"{folder}/8-", Threads())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written.size > 60 * MB
    rounds = 2 if folder.startswith("s3") else 1  # a round over a network is cut from its requests
    assert peak < (rounds + 3 + (3 * IN_FLIGHT if folder.startswith("s3") else 0)) * LEAST_PART


def test_what_fails_leaves_nothing(
    lake: tuple[FileIO, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_io, folder = lake
    data = bundle_of(range(3), 3 * MB)
    file_io.put(f"{folder}/1-alcid.stats", data)
    content = Amended.of(file_io, (f"{folder}/1-alcid.stats", len(data)), add=[sketch(1)])
    storage, name = file_io.find(f"{folder}/")

    def damaged(*_arguments: Any, **_options: Any) -> Any:
        raise StorageError("cannot be read")

    monkeypatch.setattr(contents, "PuffinReader", damaged)
    with pytest.raises(StorageError, match="cannot be read"):
        write_content(content, file_io, f"{folder}/7-", Threads())
    monkeypatch.setattr(Amendment, "write", damaged)
    with pytest.raises(StorageError, match="cannot be read"):
        write_content(content, file_io, f"{folder}/7-", Threads())
    listed = storage.list(name.rstrip("/"), hidden=True).paths.to_pylist()
    assert [path.rpartition("/")[2] for path in listed] == ["1-alcid.stats"]


def test_statistics_of_a_table_with_large_indexes_read_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """compute_stats in the driver: footers and sketches; in a task: what the kernel cannot copy."""
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({f"{n}.parquet": {"id": [n], "name": ["a"]} for n in range(3)})
    table = IcebergTable(catalog)
    options: dict[str, str | int | float] = {
        "file-index.bloom-filter.columns": "id",
        "file-index.bloom-filter.id.items": 10_000_000,
    }
    table.build_indexes(options, progress=False)
    [before] = catalog.puffins()
    assert before.stat().st_size > 12 * MB
    payloads = [Bundle.open(BytesSource(before.read_bytes())).read(KIND, row) for row in range(3)]
    amounts: list[tuple[int, int]] = []
    real = publishing.publish

    def measured(*arguments: Any) -> Any:
        with Meter() as meter:
            published = real(*arguments)
        amounts.append((meter.snapshot().bytes_read, meter.snapshot().bytes_written))
        return published

    monkeypatch.setattr(distinct_values, "publish", measured)
    table.compute_stats(progress=False)
    [after] = catalog.puffins()
    assert after != before
    [(bytes_read, bytes_written)] = amounts
    assert max(bytes_read, bytes_written) < MB
    bundle = Bundle.open(BytesSource(after.read_bytes()))
    assert [bundle.read(KIND, row) for row in range(3)] == payloads
    assert len(bundle.others) == 2
    assert table.scan("id = 1").count() == 1
    assert table.verify(progress=False).ok


def test_the_digest_of_a_large_file_is_that_of_the_small_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table built with everything in tasks and tiny parts, and as usual."""
    digests = []
    for tiny in (False, True):
        with monkeypatch.context() as patch:
            if tiny:
                patch.setattr(contents, "WRITTEN_HERE", 0)
                patch.setattr(new_file, "PART_BYTES", 100)
                patch.setattr(merging, "ROUND_BYTES", 2048)
            folder = tmp_path / str(tiny)
            catalog = MemoryCatalog(folder)
            catalog.add({f"{n}.parquet": {"id": [n, 5], "name": ["a", "b"]} for n in range(9)})
            IcebergTable(catalog).build_indexes(
                {"file-index.bitmap.columns": "id,name"}, progress=False
            )
            [path] = catalog.puffins()
            bundle = Bundle.open(BytesSource(path.read_bytes()))
            content = [(kind, bundle.read(kind, row)) for kind in bundle.kinds for row in range(9)]
            digests.append(hashlib.sha256(repr(content).encode()).hexdigest())
            assert path.name.startswith("1000-")
            assert not list(folder.rglob("*.tmp"))
    assert digests[0] == digests[1]
