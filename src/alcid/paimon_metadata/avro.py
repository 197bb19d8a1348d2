"""Avro object containers, as manifests are: records by the names of their fields.

Names of records differ between writers, and older ones do not write newer fields: both are read by
what the file says of itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import fastavro

from alcid.errors import FormatError, OptionError
from alcid.formats.avro_container import read_records
from alcid.paimon_metadata.orc_records import is_orc, read_orc
from alcid.paimon_metadata.unknown_fields import FieldFinder, UnknownField, extend_schema

__all__ = ["CODECS", "nullable", "read_as", "record_schema", "write_records"]

CODECS = {"zstd": "zstandard", "none": "null", "snappy": "snappy", "deflate": "deflate"}
"""What Avro calls the values of the option `manifest.compression`."""

T = TypeVar("T")
Record = dict[str, Any]


def read_as(
    parse: Callable[[Record, tuple[UnknownField, ...], str], T],
    data: bytes,
    *,
    schema: Record,
    version: int,
    what: str,
    file: str,
) -> list[T]:
    """All records of a container, each as what it means; of an ORC file, if it is one.

    Args:
        parse: Makes something of a record and of its fields that are not known, and is given the
            name of the file for its errors.
        data: The container.
        schema: The fields that are known.
        version: The newest version of its records that is known.
        what: What errors call it.
        file: Its name.

    Raises:
        FormatError: It is damaged, a record lacks something, or is of a newer version.
    """
    found: list[T] = []
    try:
        written, records = (read_orc if is_orc(data) else read_records)(data, file=file)
        unknown = FieldFinder(written, schema, file=file)
        for record in records:
            if record.get("_VERSION", version) > version:
                raise FormatError(
                    f"version of a {what}", file=file, found=record["_VERSION"], expected=version
                )
            found.append(parse(record, unknown.find(record), file))
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise FormatError(f"damaged {what}: {error!r}", file=file) from None
    return found


def write_records(
    schema: Record,
    records: Iterable[Record],
    compression: str,
    unknown: Iterable[tuple[UnknownField, ...]] = (),
) -> bytes:
    """A container of records.

    Args:
        schema: Of the records, as far as it is known.
        records: What to write; they may be made one by one.
        compression: The value of `manifest.compression`.
        unknown: The fields that the records have besides.

    Raises:
        OptionError: No such compression.
        UnsupportedError: A field that is not known is of two types.
    """
    if compression not in CODECS:
        raise OptionError(
            f"manifest.compression: found {compression}, expected one of {', '.join(CODECS)}"
        )
    file = io.BytesIO()
    extended = fastavro.parse_schema(extend_schema(schema, unknown))
    fastavro.writer(file, extended, records, codec=CODECS[compression])
    return file.getvalue()


def nullable(name: str, kind: Any) -> Record:
    """A field that may be null, and is by default."""
    return {"name": name, "type": ["null", kind], "default": None}


def record_schema(path: str, fields: Sequence[tuple[str, Any] | Record]) -> Record:
    """The schema of a record, with the name that Paimon's own writer gives it.

    Args:
        path: The names of the fields that lead to it, each behind a `_`; empty for the outermost.
        fields: Each a name and a type, or what `nullable` gives.
    """
    described = [
        one if isinstance(one, dict) else {"name": one[0], "type": one[1]} for one in fields
    ]
    name = f"org.apache.paimon.avro.generated.record{path}"
    return {"type": "record", "name": name, "fields": described}
