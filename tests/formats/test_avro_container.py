"""Avro containers that no writer of manifests would write: each is refused early."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from alcid.errors import FormatError
from alcid.formats.avro import container_schema, read_records
from tests.bad.avro import container, long, record

MEGABYTE = 1 << 20
BYTES = record("bytes")


def zstd(size: int, *, states_size: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=states_size).compress(bytes(size))


def deflated(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def records(data: bytes) -> list[dict[str, Any]]:
    return list(read_records(data, file="m")[1])


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_blocks_of_every_codec_are_read(codec: str) -> None:
    codecs: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": deflated,
        "zstandard": zstandard.compress,
    }
    stored = codecs[codec]
    data = container(BYTES, (1, stored(long(1) + b"a")), (1, stored(long(0))), codec=codec)
    assert records(data) == [{"f0": b"a"}, {"f0": b""}]
    assert container_schema(data, file="m") == BYTES
    assert records(container(BYTES, codec=codec)) == []


@pytest.mark.parametrize(
    ("codec", "block", "problem"),
    [
        ("deflate", deflated(bytes(8 * MEGABYTE)), "Avro block that holds too much at offset"),
        ("zstandard", zstd(8 * MEGABYTE), "Avro block that holds too much at offset"),
        ("zstandard", zstd(8 * MEGABYTE, states_size=False), "Avro block that holds too much at"),
        ("deflate", b"\xff\xff", "damaged Avro file: Error -3"),
        ("zstandard", b"no frame", "damaged Avro file: "),
        ("snappy", b"", "codec of an Avro file: found snappy, expected null, deflate or zst"),
    ],
)
def test_blocks_that_are_refused(codec: str, block: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        records(container(BYTES, (1, block), codec=codec))


def test_nothing_is_decompressed_of_blocks_that_state_too_much() -> None:
    """The first block alone would be allowed, and has a record."""
    first = zstandard.compress(long(1) + b"a")
    data = container(BYTES, (1, first), (1, zstd(8 * MEGABYTE)), codec="zstandard")
    blocks = read_records(data, file="m")[1]
    with pytest.raises(FormatError, match="holds too much"):
        next(blocks)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (record("null"), "null outside of a union"),
        (record(), "a record without fields"),
        (record({"type": "fixed", "name": "f", "size": 0}), "0 bytes"),
        (record({"type": "bytes", "logicalType": "decimal", "precision": 9}), "a decimal"),
        (record("r"), "'r' within itself"),
        (record(7), "found 7"),
        (b"no JSON", "no JSON: "),
    ],
    ids=str,
)
def test_schemas_that_are_refused(schema: Any, problem: str) -> None:
    with pytest.raises(FormatError, match=f"m: schema of an Avro file: {problem}"):
        records(container(schema, (1, b"\0")))


def test_a_schema_that_nests_too_deeply_is_refused() -> None:
    kind: Any = "int"
    for _ in range(40):
        kind = {"type": "array", "items": kind}
    with pytest.raises(FormatError, match="nested too deeply"):
        records(container(record(kind), (1, b"\0")))


@pytest.mark.parametrize(("count", "expected"), [(3, "0 to 2, a byte for each"), (-1, "0 to 2")])
def test_records_without_any_bytes(count: int, expected: str) -> None:
    with pytest.raises(
        FormatError, match=f"records of an Avro block .*found {count}, .*{expected}"
    ):
        records(container(BYTES, (count, b"\0\0")))


def test_more_records_than_bytes() -> None:
    """Each record of a manifest has a name of its own, which takes a byte at least."""
    data = container(BYTES, (4096, zstd(4096)), codec="zstandard")
    with pytest.raises(FormatError, match=f"found 4096, expected 0 to {64 + len(data)}"):
        records(data)
