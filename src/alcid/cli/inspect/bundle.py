"""What the blobs of a bundle hold: Alcid's own indexes, of many data files in one Puffin file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from alcid.bundle import Bundle, Kind
from alcid.bundle.checked import check_blocks
from alcid.bundle.kinds import BUNDLE, DIRECTORY, FILES, VERSION_PROPERTY
from alcid.cli.inspect.listing import Facts
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import Source

__all__ = ["BlobFacts", "inspect_bundle"]

BlobFacts: TypeAlias = Callable[[Blob], "Facts | None"]
"""What is to be told of a blob; None if it is none of a bundle. A damaged one raises."""


def inspect_bundle(source: Source, reader: PuffinReader) -> BlobFacts:
    """What tells of the blobs of a file, whose checksums are all compared."""
    if VERSION_PROPERTY not in reader.properties:
        return lambda _: None
    try:
        bundle = Bundle.open(source)
    except UnsupportedError:  # of a later version
        return lambda _: None
    except FormatError as error:
        problem = error
        return lambda blob: _refuse(blob, problem)

    def facts(blob: Blob) -> Facts | None:
        match blob.type:
            case type_ if type_ == FILES:
                return {"files": len(bundle.files), "rows": int(np.sum(bundle.files.rows))}
            case type_ if type_ == DIRECTORY:
                return {"kinds": sum(bundle.series(kind) is not None for kind in bundle.kinds)}
            case type_ if type_ == BUNDLE:
                return {"bundle_version": bundle.version}
        kind = Kind.of_blob(blob.type, blob.properties)
        return None if kind is None else _payload_facts(bundle, kind)

    return facts


def _refuse(blob: Blob, problem: FormatError) -> Facts | None:
    """Nothing of a bundle whose footer is damaged can be told."""
    if blob.type == BUNDLE:
        raise problem
    return None


def _payload_facts(bundle: Bundle, kind: Kind) -> Facts | None:
    series = bundle.series(kind)
    if series is None:
        return None
    for entry in range(len(series.directory)):
        place = series.stored(entry)
        if place.length:
            check_blocks(place.source.read(place.offset, place.length), place, series.name(entry))
    return {"payload_bytes": int(np.sum(series.directory.lengths))}
