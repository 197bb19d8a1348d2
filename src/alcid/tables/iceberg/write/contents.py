"""The content of a new statistics file: planned here, written by a task with bounded memory.

Iceberg keeps one statistics file for each snapshot, and its maintenance removes files that no
snapshot lists. So indexes and sketches stand in the same file, and each change writes a new one.
What stays the same is copied by the file system where it can: by S3 from object to object (through
s3fs), by the kernel on a disk. Everywhere else it is streamed through the task.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import Source, Writable
from alcid.index.bundle import MergePlan
from alcid.index.bundle.format import VERSION_PROPERTY
from alcid.index.bundle.writer import Amendment
from alcid.tables.engine import Engine, Task, Threads
from alcid.tables.iceberg.bundles import BUNDLE_SUFFIX
from alcid.tables.iceberg.file_io import FileIO

WRITTEN_HERE = 4 << 20
"""Bytes of content that the driver writes itself, as that is faster than a job of Spark."""

SourceFile = tuple[str, int | None]
"""The path of a file, and its size if it is known."""


class Content(Protocol):
    """What a new statistics file will hold; it pickles."""

    @property
    def size(self) -> int:
        """About how many bytes that is."""

    @property
    def has_bundle(self) -> bool:
        """Whether there is a bundle in it."""

    def write(self, file: Writable, file_io: FileIO, *, remote: bool) -> None:
        """Write it to a file that is of a network, or of a disk."""


@dataclass(frozen=True, slots=True)
class Amended:
    """Some blobs of a Puffin file, if there is one, and others."""

    amendment: Amendment
    source: SourceFile | None

    @classmethod
    def of(
        cls,
        file_io: FileIO,
        file: SourceFile | None,
        *,
        keep: Callable[[Blob], bool] = lambda _: False,
        add: Iterable[tuple[Blob, bytes]],
    ) -> Amended:
        """Read the footer of a file, and say what to keep of it; see `amend`.

        Raises:
            FileGoneError: The file is missing.
            FormatError: It is damaged.
            UnsupportedError: It is a bundle of a later major version.
        """
        source = None if file is None else file_io.source(*file)
        return cls(Amendment.of(source, keep=keep, add=add), file)

    @property
    def size(self) -> int:
        """The bytes of all blobs."""
        return self.amendment.size

    @property
    def has_bundle(self) -> bool:
        """Whether the other file is a bundle."""
        return VERSION_PROPERTY in self.amendment.properties

    def write(self, file: Writable, file_io: FileIO, *, remote: bool) -> None:  # noqa: ARG002
        """Write it; blobs of the other file are copied as they are."""
        self.amendment.write(file, None if self.source is None else file_io.source(*self.source))


@dataclass(frozen=True, slots=True)
class Merged:
    """A bundle that is merged from others."""

    plan: MergePlan
    sources: tuple[SourceFile, ...]
    """The bundles in `plan.numbers`."""
    has_bundle: bool = True

    @property
    def size(self) -> int:
        """The bytes of all payloads."""
        return self.plan.size

    def write(self, file: Writable, file_io: FileIO, *, remote: bool) -> None:
        """Write it; on a disk blocks are checked, elsewhere the server copies what is large."""
        sources: list[Source] = [file_io.source(*source) for source in self.sources]
        self.plan.write(file, sources, read_many=file_io.read_ranges, unchecked=remote)


@dataclass(frozen=True, slots=True)
class Written:
    """A statistics file that was written."""

    path: str
    size: int
    footer_size: int
    blobs: tuple[Blob, ...]


def write_content(content: Content, file_io: FileIO, prefix: str, engine: Engine) -> Written:
    """Write a statistics file under a new name that begins with `prefix`, by a task if it is large.

    Raises:
        StorageError: It could not be written; nothing is left then.
    """
    doer = Threads(engine) if content.size <= WRITTEN_HERE else engine
    [[written]] = doer.map(_Work(file_io, prefix), [content], np.array([content.size], np.int64))
    return written


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Writes a statistics file, for `Engine.map`."""

    file_io: FileIO
    prefix: str

    def __call__(self, task: Task[Sequence[Content]]) -> list[Written]:
        return [self._write(content) for content in task.items]

    def _write(self, content: Content) -> Written:
        suffix = BUNDLE_SUFFIX if content.has_bundle else ".stats"
        path = f"{self.prefix}{uuid.uuid4()}{suffix}"  # a task that runs twice writes two files
        storage, name = self.file_io.find(path)
        with storage.new_file(name) as file:
            content.write(file, self.file_io, remote=storage.remote)
        try:
            reader = PuffinReader(self.file_io.source(path, file.size))
        except BaseException:
            self.file_io.delete([path])
            raise
        return Written(path, file.size, reader.footer_size, reader.blobs)
