"""Maps whose keys may be null: one with a null key is refused before Arrow ends the process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid.datafiles.orc.streams import key_paths
from alcid.datafiles.parquet import Coalescing, ReadReport
from alcid.errors import FormatError, UnsupportedError
from tests.datafiles.orc.other_writers import lists_as_maps, scan_of, written

ENTRY = pa.struct([("key", pa.string()), ("value", pa.int64())])
CODECS = ["uncompressed", "zlib", "zstd"]
REFUSED = r"^a\.orc: column m: a map with a null key, which is not read"


def map_file(values: list[Any], codec: str = "zstd") -> bytes:
    """A file with a map, built from lists of pairs."""
    lists = [
        entries and [{"key": key, "value": value} for key, value in entries] for entries in values
    ]
    table = pa.table({"id": range(len(values)), "m": pa.array(lists, pa.list_(ENTRY))})
    return lists_as_maps(written(table, compression=codec), [2])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 3000])
def test_maps_without_null_keys_are_read(codec: str, count: int) -> None:
    values = [
        [(str(row), row), ("x", None)][: row % 3] if row % 4 else None for row in range(count)
    ]
    table = scan_of(map_file(values, codec)).read()
    assert table.schema.field("m").type == pa.map_(pa.string(), pa.int64())
    assert table.column("m").to_pylist() == values


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("row", [0, 6, 7, 8, 2999])
def test_a_null_key_is_refused_wherever_it_is(codec: str, row: int) -> None:
    values: list[Any] = [[(str(number), number)] for number in range(3000)]
    values[row] = [(None, 1)]
    scan = scan_of(map_file(values, codec))
    with pytest.raises(UnsupportedError, match=REFUSED):
        scan.read()
    assert scan.read(None, ["id"]).column("id").to_pylist() == list(range(3000))


@pytest.mark.parametrize("is_null", [False, True])
def test_maps_below_other_types_are_looked_at(is_null: bool) -> None:
    inner = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
    outer = pa.list_(pa.struct([("key", pa.int32()), ("value", inner)]))
    kind = pa.struct([("other", pa.int32()), ("lists", pa.list_(outer))])
    keys = ["a", "b", None if is_null else "c"]
    maps = [{"key": 1, "value": [{"key": key, "value": 5} for key in keys]}]
    rows = [None, {"other": 1, "lists": [None, [], maps]}, {"other": None, "lists": None}]
    table = pa.table({"m": pa.array(rows, kind)})
    # 1 m, 2 other, 3 lists, 4 outer, 5 its entry, 6 its key, 7 inner, 8 its entry, 9 and 10
    scan = scan_of(lists_as_maps(written(table), [4, 7]))
    (column,) = scan._footer.columns
    assert [[type_.number for type_ in path._types] for path in key_paths(column)] == [
        [1, 3, 4, 5],
        [1, 3, 4, 6, 7],
    ]
    if is_null:
        with pytest.raises(UnsupportedError, match=REFUSED):
            scan.read()
        return
    maps_read = [(1, [("a", 5), ("b", 5), ("c", 5)])]
    assert scan.read().column("m").to_pylist() == [
        None,
        {"other": 1, "lists": [None, [], maps_read]},
        {"other": None, "lists": None},
    ]


def test_a_stripe_with_too_few_encodings_is_damaged() -> None:
    scan = scan_of(map_file([[("a", 1)], [(None, 2)]]))
    (streams,) = scan._streams
    streams.message._fields[2] = streams.message._fields[2][:2]
    with pytest.raises(FormatError, match=r"a\.orc: damaged ORC stripe footer: found 2 encodings"):
        scan.read()


def test_the_keys_are_looked_at_in_what_is_read_anyway() -> None:
    data = map_file([[(str(number), number)] for number in range(50_000)])
    scan, report = scan_of(data), ReadReport()
    assert scan.read(None, ["m"], coalescing=Coalescing(gap=0), report=report).num_rows == 50_000
    assert (report.requests, report.row_groups) == (1, 1)
    assert 0 < report.bytes_read <= scan.column_sizes(["m"])[0]
