"""Blobs of other writers in a file with a bundle, or without one."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pyarrow as pa
import pytest

from alcid.errors import ChecksumError, OptionError, UnsupportedError
from alcid.formats.puffin import (
    THETA_SKETCH,
    Blob,
    PuffinReader,
    create,
)
from alcid.formats.puffin.writer import created_by
from alcid.formats.source import BytesSource
from alcid.formats.theta import ThetaSketch
from alcid.index.bundle import Bundle
from alcid.index.bundle.writer import amend
from tests.index.bundle.bundles import content, some_files, write

SKETCH = ThetaSketch.of(pa.array([1, 2, 3])).to_bytes()


def sketch(field: int, snapshot: int = 7, codec: str | None = "zstd") -> Blob:
    return Blob(THETA_SKETCH, (field,), snapshot, 5, 0, 0, codec, {"ndv": "3"})


def amended(
    source: bytes | None, *add: Blob, without: Iterable[int] = ()
) -> tuple[bytes, PuffinReader]:
    data = io.BytesIO()
    amend(
        None if source is None else BytesSource(source, "old.stats"),
        data,
        keep=lambda blob: blob.fields[0] not in without,
        add=[(blob, SKETCH) for blob in add],
    )
    return data.getvalue(), PuffinReader(BytesSource(data.getvalue(), "new.stats"))


def others(reader: PuffinReader) -> list[tuple[str, tuple[int, ...], int, int, str | None, bytes]]:
    return [
        (b.type, b.fields, b.snapshot_id, b.sequence_number, b.codec, reader.read(b))
        for b in reader.blobs
        if not b.type.startswith("alcid-")
    ]


def test_a_bundle_stays_one_next_to_blobs_of_others() -> None:
    files = some_files()
    bundle = write(files, snapshot_id=7, sequence_number=5)
    once, reader = amended(bundle, sketch(1), sketch(2, codec=None))
    assert others(reader) == [
        (THETA_SKETCH, (1,), 7, 5, "zstd", SKETCH),
        (THETA_SKETCH, (2,), 7, 5, None, SKETCH),
    ]
    again, reader = amended(once, sketch(2, snapshot=8), sketch(3), without=[2])
    assert others(reader) == [
        (THETA_SKETCH, (2,), 8, 5, "zstd", SKETCH),
        (THETA_SKETCH, (3,), 7, 5, "zstd", SKETCH),
        (THETA_SKETCH, (1,), 7, 5, "zstd", SKETCH),
    ]
    before, after = (Bundle.open(BytesSource(data, "b")) for data in (bundle, again))
    assert content(after) == content(before)
    assert [blob.type for blob in after.others] == [THETA_SKETCH] * 3
    assert amended(again, without=[1, 2, 3])[0] == bundle


def test_a_file_that_is_no_bundle_is_copied_and_says_who_wrote_it() -> None:
    data = io.BytesIO()
    with create(data, properties={"created-by": "another", "more": "told"}) as writer:
        writer.add("unknown", b"kept", fields=[4], snapshot_id=3, codec="zstd")
    _, reader = amended(data.getvalue(), sketch(1))
    assert reader.properties == {"created-by": created_by(), "more": "told"}
    assert others(reader) == [
        (THETA_SKETCH, (1,), 7, 5, "zstd", SKETCH),
        ("unknown", (4,), 3, -1, "zstd", b"kept"),
    ]
    _, reader = amended(None, sketch(1))
    assert reader.properties == {"created-by": created_by()}
    assert others(reader) == [(THETA_SKETCH, (1,), 7, 5, "zstd", SKETCH)]


def test_what_is_damaged_or_of_a_later_version_is_not_carried_over() -> None:
    bundle = write(some_files())
    at = bundle.rindex(b"bloom-filter")
    with pytest.raises(ChecksumError, match=r"^old\.stats: .*damaged footer"):
        amended(bundle[:at] + b"B" + bundle[at + 1 :])
    with pytest.raises(UnsupportedError, match=r"^old\.stats: found a bundle of version '2\.1'"):
        amended(bundle.replace(b'"alcid.bundle-version":"1.1"', b'"alcid.bundle-version":"2.1"'))
    with pytest.raises(OptionError, match=r"'alcid-pages-v1' is written by the bundle itself$"):
        amended(bundle, Blob("alcid-pages-v1", (1,), 1, 1, 0, 0))
