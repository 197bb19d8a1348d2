"""Writing Puffin files: each blob when it is added, then the footer."""

from __future__ import annotations

import errno
import io
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO, Literal, SupportsIndex
from uuid import uuid4

from alcid.errors import (
    AlcidError,
    LimitError,
    UnsupportedError,
    require,
)
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin.compression import compress
from alcid.formats.puffin.footer import MAGIC, Blob, write_footer
from alcid.formats.source import CopyTarget, Source, Writable
from alcid.formats.theta.sketch import ThetaSketch

THETA_SKETCH = "apache-datasketches-theta-v1"
DISTINCT_VALUES = "ndv"
DELETION_VECTOR = "deletion-vector-v1"
REFERENCED_FILE = "referenced-data-file"
CARDINALITY = "cardinality"
COPY_BYTES = 8 << 20
"""Bytes in memory while blobs are copied from one file to another."""
POSITION_FIELD = 2147483645
"""The id of `_pos`, the row's position in its file: the field of a deletion vector."""


@cache
def created_by() -> str:
    """What a file says of its writer; to ask for the version costs a millisecond."""
    try:
        return f"Alcid {version('alcid')}"
    except PackageNotFoundError:  # an archive of the package alone, as it is shipped to executors
        return "Alcid"


def create(
    file: str | os.PathLike[str] | BinaryIO | Writable,
    *,
    properties: Mapping[str, str] | None = None,
    compress_footer: bool = False,
) -> PuffinWriter:
    """Begin a Puffin file; it is complete when its `with` block ends without an exception.

    Args:
        file: A local path, where the file appears, or replaces another, when it is complete and not
            before. Or a binary file object, which is written from its present position, and which
            the caller closes.
        properties: Properties of the file; by default `created-by` alone.
        compress_footer: Write the footer as an LZ4 frame. Iceberg's Java code and pyiceberg read
            neither such a footer nor lz4 blobs, so do not use it for files that they should read.
    """
    return PuffinWriter(file, properties=properties, compress_footer=compress_footer)


class PuffinWriter:
    """A Puffin file that is being written; `alcid.puffin.create` makes one.

    Only the footer waits for the end: a blob that was added is no longer held in memory.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | BinaryIO | Writable,
        *,
        properties: Mapping[str, str] | None = None,
        compress_footer: bool = False,
    ) -> None:
        """Begin the file; see `alcid.puffin.create`."""
        if properties is None:
            properties = {"created-by": created_by()}
        self._properties = _properties(properties)
        self._compress_footer = compress_footer
        self._blobs: list[Blob] = []
        self._deleted_from: set[str] = set()
        self._position = self._footer_size = 0
        is_path = isinstance(file, str | os.PathLike)
        if not is_path and (isinstance(file, io.TextIOBase) or not hasattr(file, "write")):
            kind = type(file).__name__
            raise UnsupportedError(f"expected a path or a binary file, found {kind}")
        self._new = _NewFile(file) if isinstance(file, str | os.PathLike) else None
        self._file: Writable = file if self._new is None else self._new.file  # type: ignore[assignment]
        self._state: Literal["open", "finished", "closed", "incomplete"] = "open"
        try:
            self._write(MAGIC)
        except BaseException:
            self.close()
            raise

    def add(
        self,
        type: str,  # noqa: A002  # the format's own word
        data: bytes | bytearray | memoryview,
        *,
        fields: Iterable[SupportsIndex] = (),
        snapshot_id: SupportsIndex = -1,
        sequence_number: SupportsIndex = -1,
        properties: Mapping[str, str] | None = None,
        codec: str | None = None,
    ) -> Blob:
        """Write a blob, and return what the footer will say of it.

        Args:
            type: What the bytes are, for readers that know it.
            data: The content; anything with a buffer, such as a NumPy array, serves.
            fields: Ids of the table's fields that it was computed from.
            snapshot_id: The snapshot that it was computed from.
            sequence_number: The sequence number of that snapshot.
            properties: What readers of the type expect.
            codec: `zstd`, or None to store it as it is. Or `lz4`, which the format has, but which
                neither Iceberg's Java code nor pyiceberg reads.
        """
        self._check_open()
        if not isinstance(fields, Iterable):
            raise UnsupportedError(f"fields: found {fields!r}, expected a list of field ids")
        try:
            content = memoryview(data).cast("B")
        except TypeError as error:
            raise UnsupportedError(f"content of a blob: {error}") from None
        stored = content if codec is None else compress(codec, content)
        blob = Blob(
            type=_text("type", type),
            fields=tuple(_integer("fields", field, 32) for field in fields),
            snapshot_id=_integer("snapshot_id", snapshot_id, 64),
            sequence_number=_integer("sequence_number", sequence_number, 64),
            offset=self._position,
            length=len(stored),
            codec=codec,
            properties=_properties(properties or {}),
        )
        self._write(stored)
        self._blobs.append(blob)
        return _copy(blob)

    def add_stored(self, blob: Blob, stored: bytes) -> Blob:
        """Write a blob of another file with its bytes as they are stored there.

        What the footer says of it is the same but for its place.
        """
        self._check_open()
        copied = replace(require(blob, Blob, "blob"), offset=self._position, length=len(stored))
        self._write(stored)
        self._blobs.append(_copy(copied))
        return _copy(copied)

    def copy_stored(self, blobs: Sequence[Blob], source: Source) -> None:
        """Copy blobs that follow each other in another file, as they are stored there.

        No more than `COPY_BYTES` are in memory, and none come here where the new file can copy
        ranges of the other one.

        Args:
            blobs: What the footer of the other file says of them, in the order of their offsets.
            source: The other file.
        """
        self._check_open()
        if not blobs:
            return
        begin, end = blobs[0].offset, blobs[0].offset
        for blob in blobs:
            if blob.offset != end:
                raise UnsupportedError(f"blob at {blob.offset}: expected one at {end}")
            end += blob.length
        moved = self._position - begin
        if not self._copy_from(source, begin, end - begin):
            for start in range(begin, end, COPY_BYTES):
                self._write(source.read(start, min(COPY_BYTES, end - start)))
        self._blobs += [replace(_copy(blob), offset=blob.offset + moved) for blob in blobs]

    def stream(
        self,
        type: str,  # noqa: A002  # the format's own word
        *,
        fields: Iterable[SupportsIndex] = (),
        snapshot_id: SupportsIndex = -1,
        sequence_number: SupportsIndex = -1,
        properties: Mapping[str, str] | None = None,
    ) -> BlobStream:
        """Begin a blob that is too large for memory, to be written piece by piece.

        It is stored as it is, and complete when its `with` block ends; nothing else can be added
        before. The arguments are those of `add`.

        >>> file = io.BytesIO()
        >>> with create(file) as writer, writer.stream("text") as blob:
        ...     blob.write(b"any ")
        ...     blob.write(b"bytes")
        >>> writer.blobs[0].length
        9
        """
        self._check_open()
        blob = Blob(
            type=_text("type", type),
            fields=tuple(_integer("fields", field, 32) for field in fields),
            snapshot_id=_integer("snapshot_id", snapshot_id, 64),
            sequence_number=_integer("sequence_number", sequence_number, 64),
            offset=self._position,
            length=0,
            properties=_properties(properties or {}),
        )
        return BlobStream(self, blob)

    def add_deletion_vector(self, vector: DeletionVector, data_file: str) -> Blob:
        """Write the deletion vector of `data_file`, its path as the table's metadata has it.

        It has 64 bits, whatever the vector's kind. The offset and length of the blob go into the
        manifest of the table, with the cardinality.
        """
        require(vector, DeletionVector, "deletion vector")
        if not _text("data file", data_file) or data_file in self._deleted_from:
            problem = f"a second one of {data_file!r}" if data_file else "no data file"
            raise AlcidError(f"deletion vector: found {problem}, expected one for each data file")
        properties = {REFERENCED_FILE: data_file, CARDINALITY: str(vector.cardinality)}
        content = vector.to_bytes(bits=64)
        fields = [POSITION_FIELD]
        blob = self.add(DELETION_VECTOR, content, fields=fields, properties=properties)
        self._deleted_from.add(data_file)
        return blob

    def add_theta_sketch(
        self,
        sketch: ThetaSketch,
        field: SupportsIndex,
        *,
        snapshot_id: SupportsIndex,
        sequence_number: SupportsIndex,
    ) -> Blob:
        """Write the sketch of a column, by its field id, as Iceberg's own statistics have it."""
        return self.add(
            THETA_SKETCH,
            require(sketch, ThetaSketch, "sketch").to_bytes(),
            fields=[field],
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            properties={DISTINCT_VALUES: str(sketch.ndv)},
            codec="zstd",
        )

    def finish(self) -> None:
        """Write the footer; a file that was given by its path appears there."""
        self._check_open()
        footer = write_footer(self._blobs, self._properties, compressed=self._compress_footer)
        self._write(footer)
        if self._new is not None:
            self._state = "incomplete"
            try:
                self._new.publish()
            except BaseException:
                self._new.discard()
                raise
        self._state, self._footer_size = "finished", len(footer)

    def close(self) -> None:
        """Give up what was not finished: nothing remains of a file that was given by its path."""
        if self._state != "finished" and self._new is not None:
            self._new.discard()
        if self._state == "open":
            self._state = "closed"

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The blobs written so far."""
        return tuple(map(_copy, self._blobs))

    @property
    def file_size(self) -> int:
        """All bytes of the file; known when it is finished."""
        self._check_finished()
        return self._position

    @property
    def footer_size(self) -> int:
        """All bytes of the footer, as table metadata states it; known when the file is finished."""
        self._check_finished()
        return self._footer_size

    def __enter__(self) -> PuffinWriter:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Finish the file, or give it up if there was an exception."""
        try:
            if kind is None and self._state in {"open", "incomplete"}:
                self.finish()
        finally:
            self.close()

    def __repr__(self) -> str:
        """How far it is."""
        return f"<PuffinWriter: {self._state}, blobs: {len(self._blobs)}, bytes: {self._position}>"

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        self._state = "incomplete"  # unless all of it is written
        rest = memoryview(data)
        while rest:  # a file without a buffer may take less than it is given
            written: int | None = self._file.write(rest)
            if written == 0:
                raise AlcidError(f"the Puffin file took {self._position} bytes and no more")
            rest = rest[len(rest) if written is None else written :]
        self._position += len(data)
        self._state = "open"

    def _copy_from(self, source: Source, offset: int, length: int) -> bool:
        """Let the file copy a range of another one; False: it cannot."""
        state, self._state = self._state, "incomplete"
        is_copied = isinstance(self._file, CopyTarget) and self._file.copy_from(
            source, offset, length
        )
        self._state = state
        if is_copied:
            self._position += length
        return is_copied

    def _check_open(self) -> None:
        if self._state != "open":
            raise AlcidError(f"the Puffin file is {self._state}: nothing can be added")

    def _check_finished(self) -> None:
        if self._state != "finished":
            raise AlcidError("the sizes of a Puffin file are known when it is finished")


class BlobStream:
    """A blob that is being written; `PuffinWriter.stream` makes one."""

    def __init__(self, writer: PuffinWriter, blob: Blob) -> None:
        """For `PuffinWriter.stream`."""
        self._writer, self._blob = writer, blob
        self.properties = blob.properties
        """What the footer will say; more can be added as long as it is written."""
        self.length = 0
        """The bytes so far."""
        self._is_dropped = False

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append bytes."""
        self._writer._write(data)
        self._writer._state = "incomplete"  # until the blob is
        self.length += memoryview(data).nbytes

    def copy_from(self, source: Source, offset: int, length: int) -> bool:
        """Append a range of another file, if the Puffin file can copy it; see `CopyTarget`."""
        is_copied = self._writer._copy_from(source, offset, length)
        self.length += length if is_copied else 0
        return is_copied

    def __enter__(self) -> BlobStream:
        """Return itself."""
        self._writer._check_open()
        self._writer._state = "incomplete"
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Add the blob to the footer, unless there was an exception: then the file is given up."""
        if kind is None and self._is_dropped:
            self._writer._state = "open"
        elif kind is None:
            properties = _properties(self.properties)
            blob = replace(self._blob, length=self.length, properties=properties)
            self._writer._blobs.append(blob)
            self._writer._state = "open"

    def drop(self) -> None:
        """Leave out the blob, of which nothing is written."""
        if self.length:
            raise UnsupportedError(f"{self.length} bytes of the blob are written already")
        self._is_dropped = True


class _NewFile:
    """A file under a name of its own, which takes its place when it is complete."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Create it in the folder of `path`."""
        self._path = Path(path)
        if self._path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        self._temporary = self._path.with_name(f".alcid-{uuid4().hex}.tmp")
        try:
            self.file = self._temporary.open("xb")
        except OSError as error:  # in the name that was given, not in one that nobody knows
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None

    def publish(self) -> None:
        """Put it in its place, once its bytes are on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self._temporary.replace(self._path)

    def discard(self) -> None:
        """Remove it."""
        try:
            self.file.close()
        finally:
            self._temporary.unlink(missing_ok=True)


def _copy(blob: Blob) -> Blob:
    """The same, so that nobody who changes the properties changes the footer."""
    return replace(blob, properties=dict(blob.properties))


def _properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {_text("properties", key): _text(key, value) for key, value in properties.items()}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UnsupportedError(f"{name}: expected text, found {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedError(f"{name}: {value!r} is not Unicode text ({error.reason})") from None
    return value


def _integer(name: str, value: SupportsIndex, bits: int) -> int:
    try:
        number = int(operator.index(value))
    except TypeError:
        raise UnsupportedError(f"{name}: expected an integer, found {value!r}") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise LimitError(f"{name}: {number} does not fit {bits} bits")
    return number
