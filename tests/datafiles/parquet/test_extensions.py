"""Extension types (JSON, UUID, VARIANT ...) are read as their storage, at any level."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from alcid.datafiles.parquet import (
    FileRows,
    open_scan,
    read_many,
    read_rows,
)
from alcid.datafiles.parquet.thrift import StructReader
from alcid.errors import UnsupportedError
from tests.datafiles.parquet.kit import PAGED, counted, int96_written, java_int96, written

ROWS = 60


class Variant(pa.ExtensionType):  # type: ignore[misc]
    """A type that Arrow does not know: bytes in a struct."""

    def __init__(self) -> None:
        fields = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
        super().__init__(pa.struct(fields), "tests.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, _serialized: bytes) -> Variant:
        return cls()


def wrapped(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


def storages() -> dict[str, pa.Array]:
    offsets = pa.array(np.arange(ROWS + 1), pa.int32())
    json = pa.array([f'{{"a": {row}}}' if row % 7 else None for row in range(ROWS)])
    uuid = pa.array([row.to_bytes(16, "big") for row in range(ROWS)], pa.binary(16))
    variant = pa.array(
        [{"metadata": b"\1", "value": bytes((row,))} if row % 5 else None for row in range(ROWS)],
        Variant().storage_type,
    )
    return {
        "id": pa.array(range(ROWS)),
        "json": json,
        "uuid": uuid,
        "variant": variant,
        "struct": pa.StructArray.from_arrays(
            [json, uuid], ["json", "uuid"], mask=pa.array([row % 4 == 0 for row in range(ROWS)])
        ),
        "list": pa.ListArray.from_arrays(offsets, json),
        "map": pa.MapArray.from_arrays(offsets, pa.array([f"k{row}" for row in range(ROWS)]), uuid),
    }


def extended() -> pa.Table:
    plain = storages()
    json, uuid = wrapped(pa.json_(), plain["json"]), wrapped(pa.uuid(), plain["uuid"])
    offsets, keys = plain["list"].offsets, plain["map"].keys
    return pa.table(
        {
            "id": plain["id"],
            "json": json,
            "uuid": uuid,
            "variant": wrapped(Variant(), plain["variant"]),
            "struct": pa.StructArray.from_arrays(
                [json, uuid], ["json", "uuid"], mask=plain["struct"].is_null()
            ),
            "list": pa.ListArray.from_arrays(offsets, json),
            "map": pa.MapArray.from_arrays(offsets, keys, uuid),
        }
    )


@pytest.fixture
def _registered() -> object:
    pa.register_extension_type(Variant())
    yield
    pa.unregister_extension_type("tests.variant")


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize("store_schema", [True, False])
def test_rows_have_the_storage_of_extension_types(store_schema: bool) -> None:
    data = written(extended(), store_schema=store_schema, row_group_size=20, **PAGED)
    expected = pa.table(storages())
    for table in (open_scan(counted(data)).read(), read_rows(counted(data), range(ROWS))):
        table.validate(full=True)
        assert table.to_pylist() == expected.to_pylist()
        assert not any("extension" in str(kind) for kind in table.schema.types)
    some = read_rows(counted(data), [0, 7, 33])
    assert some.to_pylist() == expected.take(pa.array([0, 7, 33])).to_pylist()


@pytest.mark.usefixtures("_registered")
def test_files_with_and_without_the_schema_of_arrow_go_together() -> None:
    files = [
        FileRows(counted(written(extended(), store_schema=stored)), None, [3])
        for stored in (True, False)
    ]
    table = read_many(files, ["id", "json", "uuid"])
    expected = pa.table(storages()).select(["id", "json", "uuid"]).take(pa.array([3, 3]))
    assert table.to_pylist() == expected.to_pylist()


def test_int96_next_to_extension_types() -> None:
    table = pa.table(
        {
            "at": pa.array([java_int96(-1000), None], pa.binary(12)),
            "uuid": wrapped(pa.uuid(), pa.array([b"x" * 16, None], pa.binary(16))),
        }
    )
    data = int96_written(table)
    for read in (open_scan(counted(data)).read(), read_rows(counted(data), [0, 1])):
        assert read["at"].cast(pa.int64()).to_pylist() == [-1, None]
        assert read["uuid"].to_pylist() == [b"x" * 16, None]


def too_long(values: list[int | None], precision: int) -> pa.Array:
    """Decimals with more digits than their type has."""
    right = pa.array(
        [None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0)
    )
    return pa.Array.from_buffers(pa.decimal128(precision, 0), len(right), right.buffers())


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("nested", [False, True])
def test_decimals_with_too_many_digits_are_refused(as_integer: bool, nested: bool) -> None:
    values = too_long([1, None, 12345, 9999], 4)
    column = pa.StructArray.from_arrays([values], ["inner"]) if nested else values
    table = pa.table({"id": range(4), "price": column})
    data = written(table, store_decimal_as_integer=as_integer, write_statistics=False, **PAGED)
    problem = (
        r"^a\.parquet: column price: Decimal value 12345 does not fit in precision of "
        r"decimal(128|32|64)\(4, 0\)$"
    )
    with pytest.raises(UnsupportedError, match=problem):
        open_scan(counted(data)).read()
    with pytest.raises(UnsupportedError, match=problem):
        read_rows(counted(data), [1, 2])
    fitting = [Decimal(1), None, Decimal(9999)]
    prices = read_rows(counted(data), [0, 1, 3])["price"].to_pylist()
    assert prices == ([{"inner": price} for price in fitting] if nested else fitting)
    assert open_scan(counted(data)).read(None, ["id"])["id"].to_pylist() == [0, 1, 2, 3]


def test_a_struct_of_nothing_is_refused_by_name() -> None:
    data = written(pa.table({"id": [1, 2]}), store_schema=False)
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    (begin, _), *_, (_, end) = StructReader(footer).ranges(2)
    assert footer[begin - 1] == 0x2C  # a list of two structs: the root, and the column
    root = footer[begin:end].replace(b"schema\x15\x02", b"schema\x15\x04")
    nothing = b"\x35\x02\x18\x06nested\x15\x00\x00"
    forged = footer[: begin - 1] + b"\x3c" + root + nothing + footer[end:]
    scan = open_scan(
        counted(data[: -8 - length] + forged + len(forged).to_bytes(4, "little") + b"PAR1")
    )
    assert scan.read(None, ["id"])["id"].to_pylist() == [1, 2]
    for columns in (None, ["nested"], ["id", "nested"]):
        with pytest.raises(
            UnsupportedError, match=r"^a\.parquet: column nested: a struct of nothing$"
        ):
            scan.read(None, columns)
