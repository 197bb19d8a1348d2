"""Avro object containers, as manifests are: records by the names of their fields.

Names of records differ between writers, and older ones do not write newer fields: both are read by
what the file says of itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import fastavro

from alcid.errors import FormatError, OptionError
from alcid.paimon_metadata.avro_container import plain_container
from alcid.paimon_metadata.orc_records import is_orc, orc_records

__all__ = ["CODECS", "nullable", "read_as", "record_schema", "write_records"]

CODECS = {"zstd": "zstandard", "none": "null", "snappy": "snappy", "deflate": "deflate"}
"""What Avro calls the values of the option `manifest.compression`."""

T = TypeVar("T")
Record = dict[str, Any]


def _records(data: bytes, *, file: str) -> Iterator[Record]:
    """The records of a container, one by one: the first that is wrong ends it.

    Raises:
        FormatError: It is damaged.
    """
    plain = plain_container(data, file=file)
    try:
        yield from fastavro.reader(io.BytesIO(plain))  # type: ignore[misc]
    # Whatever a damaged schema or record leads to.
    except Exception as error:  # noqa: BLE001
        raise FormatError(f"damaged Avro file: {error!r}", file=file) from None


def read_as(parse: Callable[[Record, str], T], data: bytes, *, what: str, file: str) -> list[T]:
    """All records of a container, each as what it means; of an ORC file, if it is one.

    Args:
        parse: Makes something of a record, and is given the name of the file for its errors.
        data: The container.
        what: What errors call it.
        file: Its name.

    Raises:
        FormatError: It is damaged, or a record lacks something.
    """
    try:
        records = orc_records if is_orc(data) else _records
        return [parse(record, file) for record in records(data, file=file)]
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"damaged {what}: {error!r}", file=file) from None


def write_records(
    schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], compression: str
) -> bytes:
    """A container of records.

    Raises:
        OptionError: No such compression.
    """
    if compression not in CODECS:
        raise OptionError(
            f"manifest.compression: found {compression}, expected one of {', '.join(CODECS)}"
        )
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(dict(schema)), records, codec=CODECS[compression])
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
