"""Damage: no flipped byte and no missing end goes unnoticed, and no file is lost because of it."""

from __future__ import annotations

import io
import warnings
import zlib

import numpy as np
import pytest

from alcid import (
    AlcidError,
    ChecksumError,
    DamagedIndexWarning,
    FormatError,
    puffin,
)
from alcid.errors import AlcidWarning
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    PayloadKind,
    State,
    merge,
    open_bundles,
    reader,
)
from alcid.index.bundle.format import closing_properties
from alcid.testing import flips, truncations
from tests.index.bundle.bundles import KINDS, content, expected, some_files, write

SMALL = write(some_files())
LISTING = (
    [file.entry.path for file in some_files()],
    [file.entry.size for file in some_files()],
    [file.entry.version for file in some_files()],
)


def place_of(blob_type: str) -> range:
    with puffin.open(io.BytesIO(SMALL)) as file:
        blob = next(blob for blob in file.blobs if blob.type == blob_type)
    return range(blob.offset, blob.offset + blob.length)


FILES = place_of("alcid-files-v1")


def position_of_flip(what: str) -> int:
    return int(what.split()[1])


def test_every_flipped_byte_is_noticed() -> None:
    unseen = []
    for damage in flips(SMALL):
        try:
            entries = content(Bundle.open(BytesSource(damage.data)))
        except AlcidError:
            continue
        assert entries == expected(some_files()), damage.what
        unseen.append(position_of_flip(damage.what))
    # A zstd frame has a few bits without a meaning; its content has a CRC.
    assert set(unseen) <= set(FILES)
    assert len(unseen) <= 8


def test_every_truncation_is_noticed() -> None:
    for damage in truncations(SMALL):
        with pytest.raises(FormatError):
            Bundle.open(BytesSource(damage.data))


def test_a_set_of_a_damaged_bundle_warns_and_never_takes_what_is_wrong() -> None:
    right = {kind: [file.payloads[kind] for file in some_files()] for kind in KINDS}
    for damage in flips(SMALL):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bundles = open_bundles([BytesSource(damage.data, "x.bundle")])
            bundle_set = BundleSet(bundles, *LISTING)
            problems = 0
            for kind in bundle_set.kinds:
                coverage = bundle_set.coverage(kind)
                for file in range(3):
                    payload = coverage.payload(file)
                    if payload is None:
                        assert coverage.states[file] != State.FRESH
                        continue
                    try:
                        assert payload.read(0, payload.size) == right[kind][file], damage.what
                    except FormatError:
                        problems += 1
        warned = any(issubclass(warning.category, AlcidWarning) for warning in caught)
        assert problems or warned or position_of_flip(damage.what) in FILES, damage.what


def test_a_damaged_directory_leaves_the_other_kinds_usable() -> None:
    data = bytearray(SMALL)
    with puffin.open(io.BytesIO(SMALL)) as file:
        bloom = next(b for b in file.blobs if b.properties.get("index-type") == "bloom-filter")
    data[place_of("alcid-directory-v1")[int(bloom.properties["directory"]) + 1]] ^= 1
    bundle_set = BundleSet(open_bundles([BytesSource(data, "x.bundle")]), *LISTING)
    with pytest.warns(DamagedIndexWarning, match=r"x.bundle: damaged directory at offset \d+: fo"):
        coverage = bundle_set.coverage(KINDS[0])
    assert coverage.states.tolist() == [State.DAMAGED] * 3
    assert coverage.payload(0) is None
    assert bundle_set.coverage(KINDS[1]).states.tolist() == [State.FRESH] * 3
    strict = BundleSet(open_bundles([BytesSource(data, "x.bundle")]), *LISTING, strict=True)
    with pytest.raises(ChecksumError, match=r"x.bundle: damaged directory"):
        strict.coverage(KINDS[0])


def test_a_damaged_table_of_files_leaves_the_bundle_out() -> None:
    data = bytearray(SMALL)
    data[FILES[-1]] ^= 1
    bundles = open_bundles([BytesSource(data, "x.bundle")])
    with pytest.warns(DamagedIndexWarning, match=r"x.bundle: zstd frame: damaged"):
        bundle_set = BundleSet(bundles, *LISTING)
    assert bundle_set.bundles == ()
    assert bundle_set.coverage(KINDS[0]).states.tolist() == [State.ABSENT] * 3
    with pytest.raises(FormatError):
        BundleSet(bundles, *LISTING, strict=True)


def test_bundles_that_cannot_be_opened_are_left_out_with_a_warning() -> None:
    damaged = SMALL[:-30] + b"?" + SMALL[-29:]
    with pytest.warns(DamagedIndexWarning, match=r"bundle left out: bad.bundle: "):
        assert open_bundles([BytesSource(damaged, "bad.bundle")]) == []
    with pytest.raises(FormatError, match=r"bad.bundle"):
        open_bundles([BytesSource(damaged, "bad.bundle")], strict=True)


def test_a_merge_drops_what_is_damaged_and_says_so() -> None:
    data = bytearray(SMALL)
    data[place_of("alcid-pages-v1")[21 + 4 + 3]] ^= 1  # in the second payload, of 21 bytes each
    out = io.BytesIO()
    with pytest.warns(DamagedIndexWarning, match=r"left out: x.bundle: damaged block of pages"):
        merge(BundleSet(open_bundles([BytesSource(data, "x.bundle")]), *LISTING), out)
    expected_files = expected(some_files())
    payloads = expected_files[1]["payloads"]
    assert isinstance(payloads, dict)
    del payloads[PayloadKind.pages("id")]
    assert content(Bundle.open(BytesSource(out.getvalue()))) == expected_files
    strict = BundleSet(open_bundles([BytesSource(data, "x.bundle")]), *LISTING, strict=True)
    with pytest.raises(ChecksumError):
        merge(strict, io.BytesIO())


def test_a_table_of_files_that_states_too_much_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LARGEST_FILES", 100)
    bundles = open_bundles([BytesSource(SMALL, "x.bundle")])
    with pytest.warns(
        DamagedIndexWarning,
        match="x.bundle: table of files too large .*: expected at most 100 bytes",
    ):
        assert BundleSet(bundles, *LISTING).bundles == ()


def test_a_merge_leaves_out_a_damaged_blob_of_others() -> None:
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        writer.add_blob(puffin.Blob("note", (), -1, -1, 0, 0, "zstd"), b"seen on Monday")
    damaged = bytearray(data.getvalue())
    damaged[4] ^= 1
    bundle_set = BundleSet(open_bundles([BytesSource(damaged)]), [], [], [])
    out = io.BytesIO()
    with pytest.warns(DamagedIndexWarning, match="left out: <bytes>: zstd frame: bad magic"):
        merge(bundle_set, out)
    assert out.getvalue() == write([])


def forged(blob_type: str, change: dict[str, str], edit: bytes | None = None) -> bytes:
    """A bundle with correct checksums, in which the first blob of a type is replaced."""
    data = io.BytesIO()
    properties = {"alcid.bundle-version": "1.0"}
    with (
        puffin.open(io.BytesIO(SMALL)) as file,
        puffin.create(data, properties=properties) as writer,
    ):
        for blob in file.blobs[:-1]:
            mine = blob.type == blob_type and blob_type not in {b.type for b in writer.blobs}
            payload = file.read(blob)
            if mine and edit is not None:
                payload = edit
                change = {**change, "crc32": f"{zlib.crc32(edit):08x}"}
            said = {**blob.properties, **(change if mine else {})}
            writer.add(blob.type, payload, properties=said, codec=blob.codec)
        end = writer.blobs[-1].offset + writer.blobs[-1].length
        said = {"files": "3", **(change if blob_type == "alcid-bundle-v1" else {})}
        closing = puffin.Blob("alcid-bundle-v1", (), -1, -1, end, 0, None, said)
        closed = closing_properties(writer.blobs, closing, properties)
        writer.add("alcid-bundle-v1", b"", properties=closed)
    return data.getvalue()


def directory_of(rows: list[int], lengths: list[int]) -> bytes:
    body = np.array([rows, lengths], "<u4").tobytes() + bytes(4 * len(rows))
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (forged("alcid-container-v1", {"entries": "x"}), "bad property 'entries' of a blob"),
        (forged("alcid-container-v1", {"entries": "٣"}), "bad property 'entries' of a blob"),
        (forged("alcid-container-v1", {"entries": "2"}), "damaged directory"),
        (forged("alcid-container-v1", {"entries": "3000"}), "part outside of its section"),
        (forged("alcid-container-v1", {"directory": "9" * 18}), "part outside of its section"),
        (forged("alcid-container-v1", {"directory": "40"}), "payloads do not fill their blob"),
        (forged("alcid-bundle-v1", {"files": "2"}), "another number of files"),
        (forged("alcid-bundle-v1", {"files": ""}), "bad property 'files' of a blob"),
        (
            forged("alcid-directory-v1", {}, directory_of([0, 1, 3], [28, 28, 28])),
            "bad files of a directory",
        ),
        (
            forged("alcid-directory-v1", {}, directory_of([0, 2, 2], [28, 28, 28])),
            "bad files of a directory",
        ),
        (
            forged("alcid-directory-v1", {}, directory_of([0, 1, 2], [28, 28, 29])),
            "payloads do not fill their blob",
        ),
        (forged("alcid-files-v1", {"crc32": "00000000"}), "damaged table of files"),
        (forged("alcid-files-v1", {}, b"no Arrow"), "table of files: not an Arrow stream"),
        (forged("alcid-files-v1", {}, b""), "table of files: not an Arrow stream"),
    ],
    ids=range(14),
)
def test_contradictions_are_refused(data: bytes, problem: str) -> None:
    def read() -> None:
        bundle = Bundle.open(BytesSource(data, "x.bundle"))
        _ = bundle.files
        bundle.series(PayloadKind.container())

    with pytest.raises(FormatError, match=f"x.bundle: {problem}"):
        read()


def test_a_kind_twice_is_refused() -> None:
    same = {"column": "id", "index-type": "range-bitmap"}
    data = forged("alcid-index-v1", {**same, "column": "naïve: name"})
    with pytest.raises(FormatError, match="range-bitmap of 'naïve: name' twice at offset"):
        Bundle.open(BytesSource(data))
