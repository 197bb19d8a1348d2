"""The byte map of the blobs of a bundle, Alcid's own types in a Puffin file."""

from __future__ import annotations

import numpy as np

from alcid._text import count_text
from alcid.errors import FormatError, UnsupportedError
from alcid.formats import puffin
from alcid.formats.puffin import Blob
from alcid.formats.source import Section, Source
from alcid.index.bundle.directory import BLOCK, CRC_SIZE, HEAD
from alcid.index.bundle.format import DIRECTORY, INDEX, VERSION_PROPERTY, PayloadKind, number
from alcid.index.bundle.payloads import Series
from alcid.index.bundle.reader import Bundle
from alcid.inspect.byte_map.blobs import DrawBlob
from alcid.inspect.byte_map.file_index import draw_index
from alcid.inspect.byte_map.regions import Fields, Region, little

_NUMBER = 4


def blob_drawer(source: Source) -> DrawBlob | None:
    """What draws the blobs of a bundle; None if a Puffin file is none, or cannot be used."""
    try:
        with puffin.open(source) as reader:
            if VERSION_PROPERTY not in reader.properties:
                return None
            blobs = reader.blobs
        bundle = Bundle.open(source)
    except (FormatError, UnsupportedError):
        return None
    kinds = {PayloadKind.of_blob(blob.type, blob.properties): blob for blob in blobs}
    payloads = {kind: blob for kind, blob in kinds.items() if kind is not None}

    def draw(blob: Blob, section: Section, name: str) -> Region | None:
        if blob.type == DIRECTORY:
            return _directories(section, payloads, name)
        kind = PayloadKind.of_blob(blob.type, blob.properties)
        series = None if kind is None else bundle.series(kind)
        return None if series is None else _payloads(section, series)

    return draw


def _directories(section: Section, payloads: dict[PayloadKind, Blob], name: str) -> Region:
    """One directory for each blob of payloads, where its property says."""
    fields = Fields(section)
    file = section.source.name
    placed = sorted(
        (number(blob, "directory", file=file), number(blob, "entries", file=file), str(kind))
        for kind, blob in payloads.items()
    )

    def draw(_: int, directory: tuple[int, int, str]) -> None:
        at, entries, kind = directory
        part = Fields(section, at)
        count = count_text(entries, "payload")
        part.skip("files, by their rows", _NUMBER * entries, "number", count)
        part.skip("lengths", _NUMBER * entries, "number", count)
        part.skip("first bytes", HEAD * entries, "data", count)
        part.read("CRC-32", "check", little(CRC_SIZE), "{:08x}".format)
        fields.add(part.region(f"directory of {kind}", count))

    fields.each("directories", placed, draw, section.length)
    fields.until(section.length)
    return fields.region(name, f"{len(placed)} of them")


def _payloads(section: Section, series: Series) -> Region:
    """The payloads of a kind, each in blocks with a checksum."""
    fields = Fields(section)
    lengths = series.directory.lengths

    def draw(_: int, entry: int) -> None:
        stored = series.stored(entry)
        if not stored.length:
            return
        part = Fields(section, stored.offset - section.start)
        blocks = range(0, stored.length, BLOCK)
        end = part.position + stored.length

        def draw_block(_: int, begin: int) -> None:
            content = min(BLOCK, stored.length - begin) - CRC_SIZE
            inside = Section(section.source, section.start + part.position, content)
            if len(blocks) == 1 and series.kind.type == INDEX:
                part.add(draw_index(series.kind.index_type, inside, "the index", None))
            else:
                part.skip("a block of it", content, "data")
            part.read("CRC-32", "check", little(CRC_SIZE), "{:08x}".format)

        part.each("blocks", blocks, draw_block, end)
        fields.add(part.region(series.name(entry), count_text(int(lengths[entry]), "byte")))

    fields.each("payloads", range(len(lengths)), draw, section.length)
    total = count_text(int(np.sum(lengths)), "byte")
    return fields.region(str(series.kind), f"{count_text(len(lengths), 'payload')}, {total}")
