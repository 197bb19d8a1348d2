"""Verify of Iceberg tables: sound tables pass, and each kind of damage is found."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pytest

import alcid
from alcid import ConflictError, OptionError
from alcid._arrays import Int64Array
from alcid.errors import FileGoneError
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.keys import read_column
from alcid.index.build import IndexedFile, index_file
from alcid.index.bundle import BundleWriter, PayloadKind
from alcid.options import parse_options
from alcid.spark.iceberg import SparkCatalogTable
from alcid.storage import Storage
from alcid.tables.engine import Task
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.maintenance.findings import IndexCheck
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.progress import ReportProgress, no_progress
from alcid.types import DataType
from tests.iceberg.lake import LAKE
from tests.iceberg.saved import SavedTable
from tests.iceberg.vectors import local_path
from tests.tables.iceberg.deletes.delete_files import write_keys, write_positions
from tests.tables.maintenance.kit import Workers, checks, problems, with_payload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

R = TypeVar("R")

OPTIONS = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "class_id",
}
DAYS = 3
ROWS = 300  # of a day
THETA = "apache-datasketches-theta-v1"
NO_DATA = "the snapshot does not have that data file"
OLD = "20200101T000000.000000Z-0123456789ab"
_NAMES = count(1)


@contextmanager
def table_of(lake: SparkSession, version: int) -> Iterator[SparkCatalogTable]:
    """Three files of one day each; rows 10 and 20 are deleted; indexes, statistics."""
    name = f"{LAKE}.db.verify{next(_NAMES)}"
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, class_id INT, day DATE) USING iceberg"
        " PARTITIONED BY (day) TBLPROPERTIES ("
        f" 'format-version'='{version}', 'write.delete.mode'='merge-on-read')"
    )
    for day in range(DAYS):
        rows = lake.range(day * ROWS, (day + 1) * ROWS, numPartitions=1).selectExpr(
            "id", "CAST(id % 7 AS INT) AS class_id", f"DATE'2025-08-01' + {day} AS day"
        )
        rows.writeTo(name).append()
    lake.sql(f"DELETE FROM {name} WHERE id IN (10, 20, {ROWS + 5})")
    table = alcid.iceberg(name, lake)
    assert table.build_indexes(OPTIONS).indexed == DAYS
    assert table.compute_stats(["class_id"])["ndv"].to_pylist() == [7]
    yield SparkCatalogTable(lake, name)
    lake.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def vectors(lake: SparkSession) -> Iterator[SavedTable]:
    """A table of format 3: its deleted rows are in vectors."""
    with table_of(lake, 3) as catalog:
        yield SavedTable.save(catalog)


@pytest.fixture(scope="module")
def positions(lake: SparkSession) -> Iterator[SavedTable]:
    """A table of format 2: its deleted rows are in position delete files."""
    with table_of(lake, 2) as catalog:
        yield SavedTable.save(catalog)


def verified(saved: SavedTable, *, sample: float = 1.0, shares: int = 1) -> VerifyReport:
    return IcebergTable(saved, engine=Workers(shares)).verify(sample)


def current(saved: SavedTable) -> int:
    snapshot_id = saved.load().current_snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def entries(saved: SavedTable, content: int) -> list[dict[str, Any]]:
    """The data files (0), or position deletes and vectors (1), by path and offset."""
    rows = saved.files[current(saved)].to_pylist()
    chosen = [row for row in rows if row["content"] == content]
    return sorted(chosen, key=lambda entry: (entry["file_path"], entry["content_offset"] or 0))


def with_rows(saved: SavedTable, rows: Sequence[dict[str, Any]]) -> SavedTable:
    """The table with other entries in its current snapshot."""
    schema = saved.files[current(saved)].schema
    return replace(saved, files={current(saved): pa.Table.from_pylist(list(rows), schema)})


def with_entry(saved: SavedTable, entry: dict[str, Any], **change: Any) -> SavedTable:
    """The table with a change in one entry."""
    rows = saved.files[current(saved)].to_pylist()
    assert rows.count(entry) == 1
    return with_rows(saved, [row | change if row == entry else row for row in rows])


def with_statistics(saved: SavedTable, change: Callable[[dict[str, Any]], None]) -> SavedTable:
    """The table with a change in the statistics file of its current snapshot."""
    metadata = json.loads(saved.text)
    (file,) = (
        listed for listed in metadata["statistics"] if listed["snapshot-id"] == current(saved)
    )
    change(file)
    return replace(saved, text=json.dumps(metadata))


def statistics_path(saved: SavedTable) -> Path:
    return Path(local_path(saved.load().statistics[current(saved)].path))


@contextmanager
def damaged(path: Path, change: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Replace the bytes of a file, or remove it, for a while."""
    before = path.read_bytes()
    after = change(before)
    path.unlink()
    if after is not None:
        path.write_bytes(after)
    yield
    path.write_bytes(before)


def gone(_data: bytes) -> None:
    return None


def test_a_sound_table_is_ok(vectors: SavedTable) -> None:
    report = verified(vectors)
    assert (report.problems, report.warnings, report.leftovers, report.later) == ((), (), (), ())
    assert (report.ok, report.files, report.checked, report.rows) == (True, 3, 3, 900)
    assert (report.unindexed, report.gone, report.changed) == (0, 0, 0)
    names = ("id", "class_id", "day")
    assert {(index.index_type, index.column) for index in report.indexes} == {
        ("bloom-filter", "id"),
        ("bitmap", "class_id"),
        *((kind, name) for kind in ("pages", "statistics") for name in names),
    }
    assert all(
        index == IndexCheck(index.column, index.index_type, 3, 3) for index in report.indexes
    )


def test_files_of_positions_are_sound(positions: SavedTable) -> None:
    report = verified(positions)
    assert (report.problems, report.warnings, report.checked, report.rows) == ((), (), 3, 900)


def test_a_session_and_several_workers_find_the_same(
    lake: SparkSession, vectors: SavedTable
) -> None:
    def without_seconds(report: VerifyReport) -> VerifyReport:
        return replace(report, seconds=0)

    expected = without_seconds(verified(vectors))
    assert without_seconds(verified(vectors, shares=2)) == expected
    assert without_seconds(alcid.iceberg(vectors.name, lake).verify(progress=False)) == expected
    first = entries(vectors, 0)[0]
    other = with_entry(vectors, first, record_count=299)
    assert without_seconds(verified(other, shares=3)) == without_seconds(verified(other))


def test_a_sample_takes_the_same_share_of_the_files(vectors: SavedTable) -> None:
    report = verified(vectors, sample=0.5)
    assert (report.files, report.checked, report.rows, report.ok) == (3, 2, 600, True)
    assert {index.checked for index in report.indexes} == {2}
    for wrong in (0, 1.5):
        with pytest.raises(OptionError, match=r"sample: found .*, expected a number above 0"):
            verified(vectors, sample=wrong)


def test_a_table_without_a_snapshot_is_ok(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    report = alcid.iceberg(name, lake).verify()
    assert (report.ok, report.files, report.checked, report.indexes) == (True, 0, 0, ())


@pytest.mark.parametrize("sample", [1.0, 0.01])
def test_data_files_that_are_gone_or_of_another_size_are_always_found(
    vectors: SavedTable, sample: float
) -> None:
    first, second, _ = (entry["file_path"] for entry in entries(vectors, 0))
    with (
        damaged(Path(local_path(first)), gone),
        damaged(Path(local_path(second)), lambda data: data + b"x"),
    ):
        report = verified(vectors, sample=sample)
    size = len(Path(local_path(second)).read_bytes())
    assert [(problem.file, problem.what, problem.problem) for problem in report.problems] == [
        (first, "", "is not there"),
        (second, "size", f"found {size + 1:,}, the manifest says {size:,}"),
    ]


def test_rows_that_are_not_as_the_manifest_says_are_found(vectors: SavedTable) -> None:
    last = entries(vectors, 0)[2]
    report = verified(with_entry(vectors, last, record_count=301))
    assert [str(problem) for problem in report.problems] == [
        f"{last['file_path']}: rows: found 300, the manifest says 301"
    ]


def test_a_data_file_that_cannot_be_read_is_found(vectors: SavedTable) -> None:
    path = entries(vectors, 0)[0]["file_path"]
    with damaged(Path(local_path(path)), lambda data: data[:-8] + bytes(4) + b"PAR1"):
        report = verified(vectors)
    assert problems(report) == [(path, "")]


def test_files_of_other_formats_are_only_looked_for(vectors: SavedTable) -> None:
    first = entries(vectors, 0)[0]
    report = verified(with_entry(vectors, first, file_format="AVRO"))
    assert (report.ok, report.checked) == (True, 2)
    assert [str(warning) for warning in report.warnings] == [
        f"{first['file_path']}: not checked: neither Parquet nor Puffin, or encrypted"
    ]
    encrypted = verified(with_entry(vectors, first, key_metadata=b"k"))
    assert (encrypted.warnings, encrypted.checked) == (report.warnings, 2)


def forged(saved: SavedTable, path: Path, change: Callable[[IndexedFile], IndexedFile]) -> None:
    """Write a bundle of all data files, after a change in the first."""
    data, storage = io.BytesIO(), Storage.open("/")
    with BundleWriter(data) as writer:
        for number, entry in enumerate(entries(saved, 0)):
            name, size = entry["file_path"], entry["file_size_in_bytes"]
            source = storage.source(local_path(name).lstrip("/"), size)
            specs = parse_options(OPTIONS)
            made = index_file(source, specs, path=name, size=size, version="")
            (change(made) if number == 0 else made).add_to(writer)
    path.write_bytes(data.getvalue())


def listing(saved: SavedTable, path: Path) -> SavedTable:
    """The table whose current snapshot has another statistics file."""
    with alcid.puffin.open(path) as reader:
        footer_size = reader.footer_size

    def change(file: dict[str, Any]) -> None:
        file["statistics-path"] = str(path)
        file["file-size-in-bytes"] = path.stat().st_size
        file["file-footer-size-in-bytes"] = footer_size
        file["blob-metadata"] = []

    return with_statistics(saved, change)


def test_an_index_that_hides_a_row_is_found(vectors: SavedTable, tmp_path: Path) -> None:
    path = tmp_path / "1-forged-alcid.stats"
    kind = PayloadKind.index("class_id", "bitmap")
    other = pa.array([1, *(row % 7 for row in range(1, ROWS))], pa.int32())
    payload = BUILDERS["bitmap"](read_column(other, DataType.parse("INT")))
    forged(vectors, path, lambda made: with_payload(made, kind, payload))
    report = verified(listing(vectors, path))
    first = entries(vectors, 0)[0]["file_path"]
    assert problems(report) == [(first, "bitmap of 'class_id'")]
    check = checks(report)["bitmap of 'class_id'"]
    assert (check.checked, check.sound, check.differing) == (3, 2, 1)
    assert (check.false_negatives, check.false_positives) == (1, 1)
    assert str(check.example) == f"row 0 of {first}, 0"


def test_rows_and_footer_of_a_bundle_are_compared(vectors: SavedTable, tmp_path: Path) -> None:
    path = tmp_path / "1-forged-alcid.stats"
    forged(
        vectors,
        path,
        lambda made: replace(made, entry=replace(made.entry, rows=299, footer_crc=1)),
    )
    first = entries(vectors, 0)[0]["file_path"]
    assert problems(verified(listing(vectors, path))) == [(first, "footer"), (first, "rows")]


def test_a_damaged_bundle_is_found_once(vectors: SavedTable) -> None:
    path = statistics_path(vectors)
    with alcid.puffin.open(path) as reader:
        blob = next(blob for blob in reader.blobs if blob.type.startswith("alcid-files"))
    with (
        damaged(path, lambda data: flipped(data, blob.offset + blob.length // 2)),
        pytest.warns(alcid.DamagedIndexWarning),
    ):
        report = verified(vectors)
    assert len(report.problems) == 1
    assert str(path) in str(report.problems[0])
    assert (report.unindexed, report.checked) == (3, 3)


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def test_what_the_metadata_say_of_a_statistics_file_is_compared(vectors: SavedTable) -> None:
    listed = vectors.load().statistics[current(vectors)]
    path, footer = listed.path, listed.footer_size

    def change(file: dict[str, Any]) -> None:
        file["file-footer-size-in-bytes"] += 1
        (blob,) = file["blob-metadata"]
        blob["properties"]["ndv"] = "8"
        file["blob-metadata"].append(blob | {"fields": [1]})

    report = verified(with_statistics(vectors, change))
    snapshot = current(vectors)
    assert [(problem.file, problem.what, problem.problem) for problem in report.problems] == [
        (path, "footer", f"found {footer:,} bytes, expected {footer + 1:,}"),
        (path, f"{THETA} of fields [2]", "found 7, the metadata say 8"),
        (
            path,
            f"{THETA} of fields [1]",
            f"the file has none of snapshot {snapshot}, but the metadata list it",
        ),
    ]


def saved_path(saved: SavedTable) -> str:
    return saved.load().statistics[current(saved)].path


def test_a_sketch_that_counts_otherwise_is_found(vectors: SavedTable, tmp_path: Path) -> None:
    path, sketch = tmp_path / "1-other.stats", alcid.ThetaSketch().update(pa.array([1, 2, 3]))
    with alcid.puffin.create(path) as writer:
        writer.add(THETA, sketch.to_bytes(), fields=[2], properties={"ndv": "4"}, codec="zstd")
        writer.add(THETA, b"no sketch", fields=[3])
    report = verified(listing(vectors, path))
    assert problems(report) == [
        (str(path), "distinct values of field 2"),
        (str(path), "distinct values of field 3"),
    ]
    assert report.problems[0].problem == "found 4, the sketch says 3"


def test_a_statistics_file_that_is_gone_is_found(vectors: SavedTable) -> None:
    with damaged(statistics_path(vectors), gone):
        report = verified(vectors)
    assert [str(problem) for problem in report.problems] == [
        f"{saved_path(vectors)}: statistics file: is not there"
    ]
    assert report.unindexed == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"record_count": 3}, "cardinality: the footer says 2, the manifest 3"),
        (
            {"content_offset": 5},
            "the footer of the file has no vector of {length} bytes at offset 5",
        ),
        (
            {"referenced_data_file": "/other.parquet"},
            "referenced-data-file: the footer says {data_file}, the manifest /other.parquet",
        ),
    ],
    ids=["cardinality", "offset", "data-file"],
)
def test_vectors_are_compared_with_the_manifest(
    vectors: SavedTable, change: dict[str, Any], problem: str
) -> None:
    entry = next(entry for entry in entries(vectors, 1) if entry["record_count"] == 2)
    data_file = entry["referenced_data_file"]
    report = verified(with_entry(vectors, entry, **change))
    named = change.get("referenced_data_file", data_file)
    expected = problem.format(length=entry["content_size_in_bytes"], data_file=data_file)
    assert [(problem.file, problem.what, problem.problem) for problem in report.problems] == [
        (entry["file_path"], f"deletion vector of {named}", expected)
    ]
    unknown = [f"{entry['file_path']}: deletion vector of {named}: {NO_DATA}"]
    assert [str(warning) for warning in report.warnings] == (unknown if named != data_file else [])


def test_a_damaged_vector_is_found(vectors: SavedTable) -> None:
    entry = entries(vectors, 1)[0]
    path = Path(local_path(entry["file_path"]))
    position = entry["content_offset"] + entry["content_size_in_bytes"] // 2
    with damaged(path, lambda data: flipped(data, position)):
        report = verified(vectors)
    what = f"deletion vector of {entry['referenced_data_file']}"
    assert problems(report) == [(entry["file_path"], what)]


def test_a_vector_file_that_is_gone_or_cut_off_is_found(vectors: SavedTable) -> None:
    path = entries(vectors, 1)[0]["file_path"]
    with damaged(Path(local_path(path)), gone):
        report = verified(vectors)
    assert [str(problem) for problem in report.problems] == [
        f"{path}: deletion vectors: is not there"
    ]
    with damaged(Path(local_path(path)), lambda data: data[:-1]):
        assert problems(verified(vectors)) == [(path, "size"), (path, "deletion vectors")]


def test_a_vector_with_rows_that_do_not_exist_is_found(vectors: SavedTable) -> None:
    entry = next(entry for entry in entries(vectors, 1) if entry["record_count"] == 2)
    data_file = entry["referenced_data_file"]
    data = next(entry for entry in entries(vectors, 0) if entry["file_path"] == data_file)
    report = verified(with_entry(vectors, data, record_count=20))
    assert [(problem.file, problem.what, problem.problem) for problem in report.problems] == [
        (data_file, "rows", "found 300, the manifest says 20"),
        (
            entry["file_path"],
            f"deletion vector of {data_file}",
            "position 20 of a file of 20 rows",
        ),
    ]


def test_position_delete_files_are_compared_with_the_manifest(
    positions: SavedTable, tmp_path: Path
) -> None:
    data_file = entries(positions, 0)[0]["file_path"]
    entry, path = entries(positions, 1)[0], tmp_path / "other.parquet"
    size = write_positions(path, [(data_file, 7), (data_file, 300), ("/no.parquet", 900)])
    change = {"file_path": str(path), "file_size_in_bytes": size, "record_count": 4}
    report = verified(with_entry(positions, entry, **change))
    assert [(problem.file, problem.what, problem.problem) for problem in report.problems] == [
        (str(path), "rows", "found 3, the manifest says 4"),
        (str(path), f"positions of {data_file}", "position 300 of a file of 300 rows"),
    ]


def test_a_file_of_positions_that_is_gone_or_damaged_is_found(positions: SavedTable) -> None:
    path = entries(positions, 1)[0]["file_path"]
    with damaged(Path(local_path(path)), gone):
        report = verified(positions)
    assert [str(problem) for problem in report.problems] == [f"{path}: positions: is not there"]
    with damaged(Path(local_path(path)), lambda data: data[:-8] + bytes(4) + b"PAR1"):
        assert problems(verified(positions)) == [(path, "positions")]


@pytest.mark.parametrize(
    ("ids", "wrong"),
    [([1], None), ([2], "equality deletes"), ([99], "equality deletes")],
    ids=["sound", "without-the-column", "unknown-column"],
)
def test_equality_deletes_are_read(
    positions: SavedTable, tmp_path: Path, ids: list[int], wrong: str | None
) -> None:
    path = tmp_path / "keys.parquet"
    size = write_keys(path, id=(1, pa.array([10, 11], pa.int64())))
    rows = positions.files[current(positions)].to_pylist()
    data = next(row for row in rows if row["content"] == 0)
    keys = data | {
        "content": 2,
        "file_path": str(path),
        "record_count": 2,
        "file_size_in_bytes": size,
        "equality_ids": ids,
        "sequence_number": 9,
    }
    report = verified(with_rows(positions, [*rows, keys]))
    assert problems(report) == ([] if wrong is None else [(str(path), wrong)])


def test_a_table_whose_snapshot_was_expired_says_so(vectors: SavedTable) -> None:
    table = IcebergTable(vectors)
    number, path = current(vectors), entries(vectors, 0)[0]["file_path"]
    text = json.loads(vectors.text)
    left = [snapshot for snapshot in text["snapshots"] if snapshot["snapshot-id"] != number]
    text |= {"snapshots": left, "current-snapshot-id": left[-1]["snapshot-id"], "statistics": []}
    text["refs"]["main"]["snapshot-id"] = left[-1]["snapshot-id"]
    table.catalog = replace(vectors, text=json.dumps(text))
    with (
        damaged(Path(local_path(path)), gone),
        pytest.raises(ConflictError, match=f"snapshot {number} is expired: refresh the table"),
    ):
        table.verify()


def test_files_without_an_index_and_leftovers_are_counted(
    vectors: SavedTable, tmp_path: Path
) -> None:
    rows, copy = vectors.files[current(vectors)].to_pylist(), tmp_path / "copy.parquet"
    data = next(row for row in rows if row["content"] == 0)
    copy.write_bytes(Path(local_path(data["file_path"])).read_bytes())
    left = Path(local_path(vectors.metadata_location("_alcid"))) / f"{OLD}.puffin"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"any bytes")
    report = verified(with_rows(vectors, [*rows, data | {"file_path": str(copy)}]))
    left.unlink()
    assert (report.ok, report.files, report.checked, report.unindexed) == (True, 4, 4, 1)
    assert [(leftover.path, leftover.reason) for leftover in report.leftovers] == [
        (f"_alcid/{OLD}.puffin", "unfinished")
    ]
    assert checks(report)["bitmap of 'class_id'"].missing == 1


def test_files_that_only_bundles_know_are_as_it_should_be(vectors: SavedTable) -> None:
    rows = vectors.files[current(vectors)].to_pylist()
    first = entries(vectors, 0)[0]
    left = [
        row
        for row in rows
        if first["file_path"] not in (row["file_path"], row["referenced_data_file"])
    ]
    report = verified(with_rows(vectors, left))
    assert (report.ok, report.files, report.gone) == (True, 2, 0)


@pytest.mark.parametrize(
    ("column", "change", "problem"),
    [
        ("lower_bounds", {2: b"\1\0\0\0"}, "min: found 1, expected 0"),
        ("upper_bounds", {2: b"\5\0\0\0"}, "max: found 5, expected 6"),
        ("null_value_counts", {2: 3}, "nulls: found 3, expected 0"),
    ],
    ids=["least", "greatest", "nulls"],
)
def test_metrics_that_are_not_true_are_found(
    vectors: SavedTable, column: str, change: dict[int, Any], problem: str
) -> None:
    first = entries(vectors, 0)[0]
    other = list((dict(first[column]) | change).items())
    report = verified(with_entry(vectors, first, **{column: other}))
    assert [str(problem) for problem in report.problems] == [
        f"{first['file_path']}: metrics of 'class_id': {problem}"
    ]


def test_columns_are_found_by_their_ids(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (a INT, b STRING, c INT) USING iceberg")
    lake.sql(f"INSERT INTO {name} VALUES (2, 'a text of more than 16 letters', 4)")
    table = alcid.iceberg(name, lake)
    table.build_indexes({"file-index.bitmap.columns": "a,b"})
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN a TO z")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN z TYPE BIGINT")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN c")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN a STRING")
    lake.sql(f"INSERT INTO {name} VALUES (5, 'y', 'z')")
    table.refresh()
    table.build_indexes({"file-index.bitmap.columns": "z,b,a"})
    report = table.verify(progress=False)
    assert (report.problems, report.warnings, report.checked) == ((), (), 2)
    indexes = {what: check.sound for what, check in checks(report).items() if "bitmap" in what}
    assert indexes == {"bitmap of 'a'": 1, "bitmap of 'b'": 2, "bitmap of 'z'": 2}
    assert checks(report)["bitmap of 'a'"].missing == 1  # which the older file cannot have


def test_a_statistics_file_that_was_replaced_meanwhile_is_no_problem(vectors: SavedTable) -> None:
    table = IcebergTable(vectors)
    later = replace(vectors, text=json.dumps(json.loads(vectors.text) | {"statistics": []}))
    seen = [later, vectors]

    class Changing(SavedTable):
        def load(self) -> TableMetadata:
            return (seen.pop() if len(seen) > 1 else seen[0]).load()

    table.catalog = Changing(vectors.name, vectors.text, vectors.files)
    with damaged(statistics_path(vectors), gone):
        report = table.verify(progress=False)
    assert (report.problems, report.unindexed, seen) == ((), 3, [later])


class Replacing(Workers):
    """Workers that find a bundle gone, a few times."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self.times = times

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[Any]:
        self.times -= 1
        if self.times >= 0:
            raise FileGoneError("gone", file="1-alcid.stats")
        return super().map(function, items, sizes, report)


def test_a_bundle_that_is_replaced_while_it_is_read_is_looked_for_again(
    vectors: SavedTable,
) -> None:
    report = IcebergTable(vectors, engine=Replacing(2)).verify(progress=False)
    assert (report.ok, report.checked, report.unindexed) == (True, 3, 0)
    with pytest.raises(FileGoneError, match=r"1-alcid\.stats: gone"):
        IcebergTable(vectors, engine=Replacing(3)).verify(progress=False)
