"""Statistics files are listed by compare-and-swap, whatever others commit at the same time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import alcid
from alcid.errors import ConflictError, FileGoneError, StorageError
from alcid.formats.puffin.writer import THETA_SKETCH, created_by
from alcid.formats.source import Writable
from alcid.index.bundle import BundleWriter
from alcid.index.bundle.format import VERSION_PROPERTY
from alcid.tables.engine import Threads
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.tables.iceberg.write import publish as publishing
from alcid.tables.iceberg.write.contents import Content
from tests.tables.iceberg.memory_catalog import MemoryCatalog

PLACES = FileIO()


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(tmp_path / "t")
    made.add({"a.parquet": {"id": [1], "name": ["a"]}})
    return made


def sketch_file(
    *snapshots: int, by: str = "", types: Sequence[str] = (THETA_SKETCH,), ndv: int = 3
) -> bytes:
    """A Puffin file with a blob of each type for each snapshot."""
    data = io.BytesIO()
    with alcid.puffin.create(data, properties={"created-by": by or created_by()}) as writer:
        for snapshot in snapshots:
            for blob_type in types:
                writer.add(
                    blob_type,
                    b"any",
                    fields=[1],
                    snapshot_id=snapshot,
                    sequence_number=1,
                    properties={"ndv": str(ndv)},
                )
    return data.getvalue()


def bundle() -> bytes:
    data = io.BytesIO()
    BundleWriter(data).finish()
    return data.getvalue()


def put_foreign(catalog: MemoryCatalog, snapshot: int, name: str = "foreign.stats") -> None:
    """What Iceberg's own action does: a new file replaces what is listed."""
    data = sketch_file(snapshot, by="Iceberg")
    path = catalog.folder / "metadata" / name
    path.write_bytes(data)
    with alcid.puffin.open(path) as reader:
        footer = reader.footer_size
    listed = StatisticsFile(snapshot, str(path), len(data), footer)
    catalog.put_statistics(snapshot, listed.to_json())


@dataclass(frozen=True)
class BytesContent:
    """Bytes of a Puffin file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def has_bundle(self) -> bool:
        return VERSION_PROPERTY.encode() in self.data

    def write(self, file: Writable, _file_io: FileIO, *, remote: bool) -> None:
        assert not remote
        file.write(self.data)


def publish(
    catalog: MemoryCatalog, file_io: FileIO, snapshot: int, make: publishing.Make
) -> StatisticsFile | None:
    return publishing.publish(catalog, file_io, snapshot, make, Threads())


class Maker:
    """Returns the same bytes, and records its arguments."""

    def __init__(self, snapshot: int, content: bytes | StatisticsFile | None) -> None:
        self.snapshot = snapshot
        self.content = BytesContent(content) if isinstance(content, bytes) else content
        self.seen: list[tuple[str | None, list[str]]] = []

    def __call__(
        self, metadata: TableMetadata, lost: Sequence[StatisticsFile]
    ) -> Content | StatisticsFile | None:
        file = metadata.statistics.get(self.snapshot)
        name = None if file is None else Path(file.path).name
        self.seen.append((name, [Path(lost_file.path).name for lost_file in lost]))
        return self.content


def test_a_file_is_written_next_to_the_metadata_and_listed(catalog: MemoryCatalog) -> None:
    data = sketch_file(1000)
    published = publish(catalog, PLACES, 1000, Maker(1000, data))
    assert published is not None
    assert catalog.puffins() == [Path(published.path)]
    assert Path(published.path).read_bytes() == data
    assert Path(published.path).name.startswith("1000-")
    with alcid.puffin.open(published.path) as reader:
        assert (published.size, published.footer_size) == (len(data), reader.footer_size)
    assert catalog.metadata["statistics"] == [
        {
            "snapshot-id": 1000,
            "statistics-path": published.path,
            "file-size-in-bytes": len(data),
            "file-footer-size-in-bytes": published.footer_size,
            "blob-metadata": [
                {
                    "type": THETA_SKETCH,
                    "snapshot-id": 1000,
                    "sequence-number": 1,
                    "fields": [1],
                    "properties": {"ndv": "3"},
                }
            ],
        }
    ]


def test_only_sketches_of_the_snapshot_itself_are_listed(catalog: MemoryCatalog) -> None:
    data = sketch_file(999, 1000, types=(THETA_SKETCH, "alcid-index-v1", "other-type"))
    published = publish(catalog, PLACES, 1000, Maker(1000, data))
    assert published is not None
    assert [(blob.type, blob.snapshot_id) for blob in published.blobs] == [(THETA_SKETCH, 1000)]


def test_a_type_that_another_tool_has_listed_stays_listed(catalog: MemoryCatalog) -> None:
    put_foreign(catalog, 1000)
    catalog.metadata["statistics"][0]["blob-metadata"] = [
        {"type": "other-type", "snapshot-id": 1000, "sequence-number": 1, "fields": []}
    ]
    data = sketch_file(1000, types=(THETA_SKETCH, "other-type", "third-type"))
    published = publish(catalog, PLACES, 1000, Maker(1000, data))
    assert published is not None
    assert [blob.type for blob in published.blobs] == [THETA_SKETCH, "other-type"]


def test_the_name_says_whether_a_bundle_is_in_it(catalog: MemoryCatalog) -> None:
    with alcid.puffin.open(io.BytesIO(bundle())) as reader:
        assert VERSION_PROPERTY in reader.properties
    publish(catalog, PLACES, 1000, Maker(1000, bundle()))
    assert catalog.listed()[1000].endswith("-alcid.stats")
    publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert not catalog.listed()[1000].endswith("-alcid.stats")


def test_a_commit_of_another_sort_costs_only_another_try(catalog: MemoryCatalog) -> None:
    maker = Maker(1000, sketch_file(1000))
    catalog.between += [
        lambda: void(catalog.add({"b.parquet": {"id": [2], "name": ["b"]}})),
        lambda: void(catalog.add({"c.parquet": {"id": [3], "name": ["c"]}})),
    ]
    published = publish(catalog, PLACES, 1000, maker)
    assert published is not None
    assert maker.seen == [(None, [])]
    assert catalog.puffins() == [Path(published.path)]
    assert catalog.commits == 1


def test_a_file_that_another_listed_before_the_commit_is_taken_into_account(
    catalog: MemoryCatalog,
) -> None:
    maker = Maker(1000, sketch_file(1000))
    catalog.between.append(lambda: put_foreign(catalog, 1000))
    published = publish(catalog, PLACES, 1000, maker)
    assert published is not None
    assert maker.seen == [(None, []), ("foreign.stats", [])]
    # The first file is gone; the other tool's file is left to that tool.
    assert {path.name for path in catalog.puffins()} == {Path(published.path).name, "foreign.stats"}
    assert catalog.listed() == {1000: Path(published.path).name}


def test_a_file_that_another_lists_after_the_commit_is_merged_again(catalog: MemoryCatalog) -> None:
    maker = Maker(1000, bundle())
    catalog.after.append(lambda: put_foreign(catalog, 1000))
    published = publish(catalog, PLACES, 1000, maker)
    assert published is not None
    (first, _), (second, lost) = maker.seen
    assert (first, second) == (None, "foreign.stats")
    assert [name.endswith("-alcid.stats") for name in lost] == [True]
    assert {path.name for path in catalog.puffins()} == {Path(published.path).name, "foreign.stats"}
    assert catalog.listed() == {1000: Path(published.path).name}


def test_a_bundle_that_another_tool_replaced_before_the_commit_is_not_lost(
    catalog: MemoryCatalog,
) -> None:
    before = publish(catalog, PLACES, 1000, Maker(1000, bundle()))
    assert before is not None
    seen = []

    def make(_: TableMetadata, lost: Sequence[StatisticsFile]) -> Content:
        seen.append([file.path for file in lost if Path(file.path).exists()])
        return BytesContent(bundle())

    catalog.between.append(lambda: put_foreign(catalog, 1000))
    after = publish(catalog, PLACES, 1000, make)
    assert after is not None
    assert seen == [[], [before.path]]
    assert not Path(before.path).exists()
    assert catalog.listed() == {1000: Path(after.path).name}


def test_what_another_builder_made_is_not_mixed_with_what_it_replaced(
    catalog: MemoryCatalog,
) -> None:
    publish(catalog, PLACES, 1000, Maker(1000, bundle()))
    maker = Maker(1000, bundle())
    catalog.between.append(lambda: void(publish(catalog, PLACES, 1000, Maker(1000, bundle()))))
    publish(catalog, PLACES, 1000, maker)
    assert [lost for _, lost in maker.seen] == [[], []]
    assert len(catalog.puffins()) == 1


def test_a_file_that_is_listed_already_is_no_commit(catalog: MemoryCatalog) -> None:
    first = publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert publish(catalog, PLACES, 1000, Maker(1000, first)) == first
    assert catalog.commits == 1
    assert len(catalog.puffins()) == 1


def test_no_file_takes_the_listed_one_away(catalog: MemoryCatalog) -> None:
    publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert publish(catalog, PLACES, 1000, Maker(1000, None)) is None
    assert catalog.listed() == {}
    assert catalog.puffins() == []


def test_a_file_that_another_snapshot_lists_stays(catalog: MemoryCatalog) -> None:
    first = publish(catalog, PLACES, 1000, Maker(1000, bundle()))
    assert first is not None
    catalog.add({"b.parquet": {"id": [2], "name": ["b"]}})
    listed = StatisticsFile(1001, first.path, first.size, first.footer_size)
    assert publish(catalog, PLACES, 1001, Maker(1001, listed)) == listed
    publish(catalog, PLACES, 1001, Maker(1001, sketch_file(1001)))
    assert Path(first.path).exists()
    assert catalog.listed()[1000] == Path(first.path).name
    publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert not Path(first.path).exists()


def test_a_snapshot_that_expires_meanwhile_is_reported_and_nothing_is_left(
    catalog: MemoryCatalog,
) -> None:
    catalog.add({"b.parquet": {"id": [2], "name": ["b"]}})
    catalog.between.append(lambda: catalog.expire(1000))
    with pytest.raises(ConflictError, match="snapshot 1000 was expired meanwhile"):
        publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert catalog.puffins() == []


def test_endless_conflicts_are_an_error_and_nothing_is_left(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_FIRST_WAIT", 0.0)
    numbers = iter(range(1000))

    def commit() -> None:
        catalog.add({f"{next(numbers)}.parquet": {"id": [2], "name": ["b"]}})
        catalog.between.append(commit)

    catalog.between.append(commit)
    with pytest.raises(ConflictError, match="others committed 20 times meanwhile"):
        publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert catalog.puffins() == []
    assert catalog.listed() == {}


def test_a_file_that_vanishes_while_it_is_merged_is_looked_for_again(
    catalog: MemoryCatalog,
) -> None:
    tries: list[int] = []

    def make(_: TableMetadata, __: Sequence[StatisticsFile]) -> Content:
        tries.append(len(tries))
        if len(tries) < 3:
            raise FileGoneError("gone", file="a.stats")
        return BytesContent(bundle())

    assert publish(catalog, PLACES, 1000, make) is not None
    assert tries == [0, 1, 2]


def test_a_file_that_never_exists_is_reported(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_FIRST_WAIT", 0.0)

    def make(_: TableMetadata, __: Sequence[StatisticsFile]) -> Content:
        raise FileGoneError("gone", file="a.stats")

    with pytest.raises(FileGoneError, match=r"a\.stats: gone"):
        publish(catalog, PLACES, 1000, make)


def test_a_file_stays_if_nobody_knows_whether_it_was_listed(catalog: MemoryCatalog) -> None:
    def break_down() -> None:
        raise StorageError("the commit may have been made")

    catalog.between.append(break_down)
    with pytest.raises(StorageError, match="may have been made"):
        publish(catalog, PLACES, 1000, Maker(1000, sketch_file(1000)))
    assert len(catalog.puffins()) == 1


def void(_: object) -> None:
    """Nothing: for calls whose result does not matter."""
