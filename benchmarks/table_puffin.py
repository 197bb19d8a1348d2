"""Puffin files with very many deletion vectors, beside pyiceberg, which can only read them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from alcid import DeletionVector, puffin
from alcid.formats.source import FileSource, Section
from benchmarks import table_data
from benchmarks.table_run import TIME, Case, Group, Side, here, scaled

__all__ = ["puffin_cases"]

_PEER = "pyiceberg"
_POSITIONS = 100
_ROWS = 10_000


def puffin_cases(scale: float, folder: Path) -> Iterator[Case]:
    """Write the file, open it, read all of the vectors and one of them."""
    count = scaled(10_000, scale)
    group = Group(f"Puffin: {count:,} deletion vectors in one file", "vectors", TIME)
    path = folder / "vectors.puffin"
    for operation, sides in (
        ("write, to memory", partial(_write, count)),
        ("open", partial(_open, count, path)),
        ("read all, opened before", partial(_read_all, count)),
        ("open, read the bytes of one", partial(_open_and_read_one, count, path)),
        ("read one by its range, not opened", partial(_read_range, count, path)),
    ):
        yield Case(group, operation, f"{_POSITIONS} positions each", sides)


def _vectors(count: int) -> dict[str, DeletionVector]:
    drawn = table_data.random("vectors").integers(0, _ROWS, (count, _POSITIONS))
    return {f"data/part-{n:05}.parquet": DeletionVector(row) for n, row in enumerate(drawn)}


def _written(vectors: dict[str, DeletionVector]) -> bytes:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        for name, vector in vectors.items():
            writer.add_deletion_vector(vector, name)
    return file.getvalue()


def _write(count: int) -> Iterator[Side]:
    vectors = _vectors(count)

    def right(data: bytes) -> bool:
        with puffin.open(io.BytesIO(data)) as reader:
            return [reader.read_deletion_vector(blob) for blob in reader.blobs] == list(
                vectors.values()
            )

    yield here(count, lambda: _written(vectors), right)


def _open(count: int, path: Path) -> Iterator[Side]:
    path.write_bytes(_written(_vectors(count)))

    def opened() -> int:
        with puffin.open(path) as reader:
            return len(reader.blobs)

    yield here(count, opened, lambda found: found == count)
    yield here(
        count,
        lambda: len(PuffinFile(path.read_bytes()).footer.blobs),
        lambda found: found == count,
        _PEER,
    )


def _read_all(count: int) -> Iterator[Side]:
    """From memory, where the peer has all of the file."""
    vectors = _vectors(count)
    data, expected = _written(vectors), list(vectors.values())
    reader = puffin.open(io.BytesIO(data))
    yield here(
        count,
        lambda: [reader.read_deletion_vector(blob) for blob in reader.blobs],
        lambda found: bool(found == expected),
    )
    file = PuffinFile(data)
    yield here(
        count,
        lambda: deletion_vectors_from_puffin_file(file),
        lambda found: all(
            np.array_equal(theirs.to_vector().to_numpy(), ours.to_numpy())
            for theirs, ours in zip(found, expected, strict=True)
        ),
        _PEER,
    )


def _open_and_read_one(count: int, path: Path) -> Iterator[Side]:
    vectors = _vectors(count)
    path.write_bytes(_written(vectors))
    expected = list(vectors.values())[count // 2].to_bytes(bits=64)

    def read() -> bytes:
        with puffin.open(path) as reader:
            return reader.read(reader.blobs[count // 2])

    def read_by_it() -> bytes:
        file = PuffinFile(path.read_bytes())
        payload: bytes = file.get_blob_payload(file.footer.blobs[count // 2])
        return payload

    yield here(1, read, lambda found: bool(found == expected))
    yield here(1, read_by_it, lambda found: bool(found == expected), _PEER)


def _read_range(count: int, path: Path) -> Iterator[Side]:
    """As with a manifest, which says where a vector lies and how many positions it has."""
    vectors = _vectors(count)
    path.write_bytes(_written(vectors))
    with puffin.open(path) as reader:
        blob = reader.blobs[count // 2]
    expected = list(vectors.values())[count // 2]

    def read() -> DeletionVector:
        with FileSource(path) as source:
            section = Section(source, blob.offset, blob.length)
            return DeletionVector.read(section, expected.cardinality)

    yield here(1, read, lambda found: bool(found == expected))
