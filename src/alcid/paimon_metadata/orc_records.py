"""Manifests of tables with `manifest.format=orc`: the records of an ORC file.

They have the fields of those in Avro, so that what they mean is read by the same code. Footers are
checked here before Arrow sees them; the data of ORC files has no checksums.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from alcid.errors import FormatError
from alcid.formats.source import BytesSource, read_each
from alcid.orc_file.footer import MAGIC, parse_footer
from alcid.orc_file.tail import read_tails
from alcid.parquet_file import ReadReport
from alcid.parquet_file.decoding import naming_damage

__all__ = ["is_orc", "orc_records"]

_TIME: Final = pa.timestamp("ms", "UTC")
"""What Avro manifests keep the time of creation of a file in."""


def is_orc(data: bytes) -> bool:
    """Whether a manifest is an ORC file.

    >>> is_orc(b"ORC..."), is_orc(b"Obj" + bytes([1]))
    (True, False)
    """
    return data.startswith(MAGIC)


def orc_records(data: bytes, *, file: str) -> Iterator[dict[str, Any]]:
    """The records of an ORC file, as those of Avro are given.

    Raises:
        FormatError: It is damaged, or states more records than it has bytes.
        LimitError: Its footer is too large.
        UnsupportedError: It is encrypted, or compressed in a way that Paimon does not.
    """
    from pyarrow.orc import ORCFile

    source = BytesSource(data, file)
    (tail,) = read_tails([source], ReadReport(), read_each)
    footer = parse_footer(tail.footer, tail.postscript, source)
    rows = sum(stripe.rows for stripe in footer.stripes)
    if rows > len(data):  # every entry has a name, and names differ
        raise FormatError("records of an ORC manifest", file=file, found=rows, expected=len(data))
    with naming_damage(file, "damaged ORC manifest"):
        opened = ORCFile(io.BytesIO(data))
        for stripe in range(opened.nstripes):
            batch = opened.read_stripe(stripe)
            columns = [_as_in_avro(column) for column in batch.columns]
            yield from pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()


def _as_in_avro(values: pa.Array) -> pa.Array:
    """Timestamps, also those of a struct, as instants in milliseconds."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("ms")).cast(_TIME)
    if not pa.types.is_struct(values.type):
        return values
    children = [_as_in_avro(child) for child in values.flatten()]
    return pa.StructArray.from_arrays(
        children, [field.name for field in values.type], mask=values.is_null()
    )
