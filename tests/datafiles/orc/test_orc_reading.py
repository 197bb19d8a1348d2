"""Tables with ORC files: whole stripes are read, and the selected rows are taken from them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from alcid.datafiles.orc import OrcScan
from alcid.datafiles.parquet import ParquetScan
from alcid.expressions import normalize, parse
from alcid.formats.file_index.reader import ANY, EVERY, Selection
from alcid.scan import Column, ReadPlan, TableColumns
from alcid.scan.access import PageAccess, WholeAccess
from alcid.scan.candidates import Candidates
from alcid.scan.leaves import TablePredicate
from alcid.scan.reading import ReadResult, RowReader
from alcid.storage import Storage
from alcid.tables.open_files import OpenFiles
from alcid.types import DataType
from tests.datafiles.orc.other_writers import in_zone, written

ROWS = 20_000
SCHEMA = pa.schema(
    {"id": pa.int64(), "at": pa.timestamp("us"), "text": pa.string(), "later": pa.int32()}
)
WRITTEN = SCHEMA.remove(3)


def rows_of(file: int) -> pa.Table:
    ids = np.arange(file * ROWS, (file + 1) * ROWS)
    moments = pa.array(ids * 1000, pa.timestamp("us"))
    noise = np.random.default_rng(file).integers(0, 1 << 62, ROWS)
    return pa.table([ids, moments, [f"{number:x}" for number in noise.tolist()]], schema=WRITTEN)


@pytest.fixture
def files(tmp_path: Path) -> OpenFiles:
    """Two ORC files of several stripes, and a Parquet file between them."""
    for file in (0, 2):
        path = tmp_path / f"{file}.orc"
        pyarrow.orc.write_table(
            rows_of(file), path, stripe_size=20_000, batch_size=1024, compression="zstd"
        )
    pq.write_table(rows_of(1), tmp_path / "1.parquet", write_page_index=True, data_page_size=4096)
    storage = Storage.open(str(tmp_path))
    columns = [Column(field.name, field.type, DataType.from_arrow(field.type)) for field in SCHEMA]
    return OpenFiles(
        storage,
        storage.list(),
        np.full(3, ROWS),
        TableColumns(columns, {}, [columns[:3]], np.zeros(3, np.int64)),
        [()],
        pa.table({}),
        pa.nulls(3, pa.uint32()),
    )


def reader_of(files: OpenFiles, where: str) -> RowReader:
    predicate = normalize(parse(where))
    bound = TablePredicate(predicate, files, sorted(predicate.columns()))
    return RowReader(files, bound, use_statistics=True)


def expected(ids: list[int]) -> pa.Table:
    every = pa.concat_tables([rows_of(file) for file in range(3)])
    return every.take(pa.array(ids, pa.int64())).append_column(
        "later", pa.nulls(len(ids), pa.int32())
    )


def read(reader: RowReader, selections: list[Selection], columns: list[str]) -> ReadResult:
    return reader.read(Candidates.of(dict(enumerate(selections))), columns)


def table_of(result: ReadResult) -> pa.Table:
    return pa.concat_tables([part.table for part in result.parts])


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id in (5, 19999, 20000, 45000)", [5, 19999, 20000, 45000]),
        ("id >= 39998 and id < 40002", [39998, 39999, 40000, 40001]),
        ("at = timestamp '1970-01-01 00:00:50.001'", [50001]),
        ("later is not null", []),
    ],
)
def test_rows_are_found_in_files_of_both_formats(
    files: OpenFiles, where: str, ids: list[int]
) -> None:
    parts = read(reader_of(files, where), [ANY] * 3, SCHEMA.names).parts
    table = pa.concat_tables([SCHEMA.empty_table(), *(part.table for part in parts)])
    assert table.equals(expected(ids))
    positions = [(part.rows.files * ROWS + part.rows.positions).tolist() for part in parts]
    assert [position for some in positions for position in some] == ids


@pytest.mark.parametrize("exact", [True, False])
def test_rows_by_position_are_taken_out_of_stripes(files: OpenFiles, exact: bool) -> None:
    positions = [0, 7777, 19_999]
    chosen = Selection(BitMap(positions), exact=exact)
    result = read(reader_of(files, "id >= 0"), [chosen] * 3, SCHEMA.names)
    rows = [file * ROWS + row for file in range(3) for row in positions]
    assert table_of(result).equals(expected(rows))
    kinds = [type(access) for access in result.opened.accesses]
    assert kinds == [WholeAccess, PageAccess, WholeAccess]


def test_only_the_stripes_with_the_rows_are_read(files: OpenFiles) -> None:
    scan = files.open([0])[0]
    assert isinstance(scan, OrcScan)
    assert len(scan.group_rows) > 2
    row = scan.group_rows[0]  # the first row of the second stripe
    result = read(reader_of(files, "id >= 0"), [Selection(BitMap([row]))], ["text"])
    (access,) = result.opened.accesses
    assert isinstance(access, WholeAccess)
    assert access.groups == [1]
    assert access.size == scan.column_sizes(["id", "text"])[1]


def test_all_rows_are_read_and_counted(files: OpenFiles) -> None:
    reader = reader_of(files, "id >= 0")
    every = read(reader, [EVERY] * 3, SCHEMA.names)
    assert table_of(every).equals(expected(list(range(3 * ROWS))))
    assert read(reader, [EVERY, ANY, ANY], []).count == 3 * ROWS


def test_files_are_opened_by_the_end_of_their_names(files: OpenFiles) -> None:
    assert [files.has_pages(file) for file in range(3)] == [False, True, False]
    kinds = [type(scan) for scan in files.open([2, 1, 0])]
    assert kinds == [OrcScan, ParquetScan, OrcScan]
    assert files.open([2])[0] is files.open([2])[0]
    assert files.group_bounds(0, files.open([0])[0], ["id"]) == {}


def test_some_of_the_files_are_read_elsewhere(files: OpenFiles) -> None:
    where = normalize(parse("id in (1, 50000)"))
    part = ReadPlan(
        files.part(np.array([0, 2])),
        where,
        ["id"],
        SCHEMA.names,
        Candidates.whole(np.arange(2)),
        use_statistics=True,
        deletions={},
    )
    parts = pickle.loads(pickle.dumps(part)).read()
    assert pa.concat_tables([batch.table for batch in parts]).equals(expected([1, 50000]))


def test_instants_of_the_writers_clock_are_the_same_elsewhere(tmp_path: Path) -> None:
    kind = pa.timestamp("ns", "UTC")
    rows = pa.table({"at": pa.array([0, 1_700_000_000_000_000_000], kind)})
    (tmp_path / "0.orc").write_bytes(in_zone(written(rows), "Asia/Shanghai"))
    storage = Storage.open(str(tmp_path))
    columns = TableColumns(
        [Column("at", kind, DataType.from_arrow(kind))],
        {},
        [[Column("at", kind, DataType.from_arrow(kind))]],
        np.zeros(1, np.int64),
    )
    nanoseconds = [
        file.open([0])[0].read(None, ["at"]).column("at").cast(pa.int64()).to_pylist()
        for is_local in (False, True)
        for files in [
            OpenFiles(
                storage,
                storage.list(),
                np.full(1, 2),
                columns,
                [()],
                pa.table({}),
                pa.nulls(1, pa.uint32()),
                has_local_instants=is_local,
            )
        ]
        for file in (files, files.part(np.array([0])), pickle.loads(pickle.dumps(files)))
    ]
    moved = [28_800_000_000_000, 1_700_028_800_000_000_000]
    assert nanoseconds == [[0, 1_700_000_000_000_000_000]] * 3 + [moved] * 3
