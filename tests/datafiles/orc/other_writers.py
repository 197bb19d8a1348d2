"""ORC files that pyarrow does not write: in other time zones, or with null keys in maps."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.orc

from alcid.datafiles.orc import OrcScan, open_orc_scans
from alcid.datafiles.orc.footer import LIST, MAP
from alcid.datafiles.orc.protobuf import Message, encode_message
from alcid.datafiles.orc.stripes import one_stripe_file
from alcid.formats.source import BytesSource

ZONE = 3  # the field of a stripe's footer


def written(table: pa.Table, **options: Any) -> bytes:
    """A file of one stripe, written in UTC."""
    file = io.BytesIO()
    pyarrow.orc.write_table(table, file, **options)
    return file.getvalue()


def scan_of(data: bytes, **options: Any) -> OrcScan:
    (scan,) = open_orc_scans([BytesSource(data, "a.orc")], **options)
    return scan


def in_zone(data: bytes, zone: str | None) -> bytes:
    """The same file as if written in another zone; None if the writer did not name its zone."""
    scan = scan_of(data)
    (stripe,), (streams,) = scan._footer.stripes, scan._streams
    fields = [(field, value) for field, value in streams.message if field != ZONE]
    named = [] if zone is None else [(ZONE, zone.encode())]
    made = one_stripe_file(scan.source, scan._tail, stripe, [*fields, *named])
    return made.read(0, made.size)


def lists_as_maps(data: bytes, lists: Sequence[int]) -> bytes:
    """Lists of structs of two become maps; `lists` are their numbers.

    A struct is the column behind its list, and is gone in the new file.
    """
    scan = scan_of(data)
    (stripe,), (streams,) = scan._footer.stripes, scan._streams
    gone = {number + 1 for number in lists}
    types = [Message(part, "") for part in scan._tail.footer_message("").parts(4)]
    kept = [number for number in range(len(types)) if number not in gone]
    numbers = {number: new for new, number in enumerate(kept)}

    def made_type(number: int) -> bytes:
        type_ = types[number]
        if number in lists:
            assert type_.number(1) == LIST
            children = [(2, numbers[child]) for child in types[number + 1].numbers(2)]
            return encode_message([(1, MAP), *children])
        children = [(2, numbers[child]) for child in type_.numbers(2)]
        return encode_message([*(pair for pair in type_ if pair[0] != 2), *children])

    def footer() -> Any:
        for part in streams.message.parts(1):
            kind, number, length = (Message(part, "").number(field) for field in (1, 2, 3))
            yield 1, encode_message([(1, kind), (2, numbers.get(number, 99)), (3, length)])
        encodings = streams.message.parts(2)
        yield from ((2, encodings[number]) for number in kept)
        yield ZONE, b"GMT"

    made = one_stripe_file(scan.source, scan._tail, stripe, footer(), list(map(made_type, kept)))
    return made.read(0, made.size)
