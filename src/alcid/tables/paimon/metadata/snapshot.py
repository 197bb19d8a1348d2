"""`snapshot/snapshot-<n>`: a snapshot as JSON; and the folder of snapshots and tags.

A snapshot has two manifest lists: the *base* with the manifests of the snapshot before, the *delta*
with those that its commit added; together they are all data files. All deletion vectors and hash
indexes are in one index manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from alcid.errors import FileGoneError, FormatError, UnsupportedError
from alcid.storage import Storage
from alcid.tables.paimon.metadata.schema import parse_json, to_json

MAIN = "main"
"""The main branch of a table."""

COMMIT_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")

_VERSION = 3
_NAME = re.compile(r"snapshot/snapshot-(\d+)")
_HINTS = _LATEST, _EARLIEST = "snapshot/LATEST", "snapshot/EARLIEST"
_OF_ONE_COMMIT = ("changelogManifestListSize", "operation", "uuid", "writerVersion")
"""Fields of Paimon's own commits that the next snapshot does not inherit."""
_REQUIRED = (
    *("id", "schema_id", "base_manifest_list", "delta_manifest_list"),
    *("commit_user", "commit_identifier", "commit_kind", "time_millis"),
)


def branch_folder(branch: str) -> str:
    """The folder of the schemas, snapshots and tags of a branch, which ends with `/`.

    Manifests and data files of all branches are in the folder of the table.

    Raises:
        UnsupportedError: An invalid name.

    >>> branch_folder("test"), branch_folder("main")
    ('branch/branch-test/', '')
    """
    if not branch or "/" in branch:
        raise UnsupportedError(f"branch: found {branch!r}, expected a name")
    return "" if branch == MAIN else f"branch/branch-{branch}/"


def snapshot_path(number: int, branch: str = MAIN) -> str:
    """The path of a snapshot in its table."""
    return f"{branch_folder(branch)}snapshot/snapshot-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot of a table."""

    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    index_manifest: str | None = None
    commit_user: str
    commit_identifier: int
    commit_kind: str
    time_millis: int
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    next_row_id: int | None = None
    properties: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the JSON."""

    @property
    def inherited(self) -> dict[str, Any]:
        """Fields of a newer Paimon that the next snapshot has to repeat."""
        return {name: value for name, value in self.extra.items() if name not in _OF_ONE_COMMIT}

    @classmethod
    def parse(cls, data: bytes, *, file: str = "<snapshot>") -> Snapshot:
        """Parse the JSON of a snapshot, or of a tag, which has more fields.

        Raises:
            FormatError: It is damaged.
        """
        document = parse_json(data, file)
        version = document.pop("version", 1)
        if not isinstance(version, int) or version > _VERSION:
            raise FormatError("snapshot version", file=file, found=version, expected=_VERSION)
        values = {name: document.pop(_json_name(name), None) for name in _NAMES}
        for name in _REQUIRED:
            if values[name] is None:
                raise FormatError(f"snapshot without {_json_name(name)}", file=file)
        for name, value in values.items():
            expected: type = _KINDS[name]
            if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
                raise FormatError(
                    f"snapshot: {_json_name(name)}",
                    file=file,
                    found=repr(value)[:80],
                    expected=expected.__name__,
                )
        return cls(**values, extra=document)

    def to_json(self) -> bytes:
        """The JSON as Paimon writes it; fields that are None are omitted."""
        values = {_json_name(name): getattr(self, name) for name in _NAMES}
        values = {name: value for name, value in values.items() if value is not None}
        return to_json({"version": _VERSION, **values, **self.extra})


_NAMES = tuple(field.name for field in fields(Snapshot) if field.name != "extra")
_KINDS: dict[str, type] = {
    field.name: str if str(field.type).startswith("str") else int
    for field in fields(Snapshot)
    if field.name in _NAMES
} | {"properties": dict}


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


class SnapshotFolder:
    """The snapshots and tags of a branch of a table."""

    def __init__(self, storage: Storage, branch: str = MAIN) -> None:
        """Take the folder of the table."""
        self._storage, self._branch = storage, branch
        self._folder = branch_folder(branch)

    def latest(self) -> Snapshot | None:
        """The latest snapshot; None before the first commit.

        The search starts at the hint `LATEST`, which may be outdated or wrong.
        """
        hint = self._hint(_LATEST)
        if hint is not None and self._storage.exists(self.path(hint)):
            while self._storage.exists(self.path(hint + 1)):
                hint += 1
            with suppress(FileGoneError):  # expired by now
                return self.get(hint)
        before: list[int] = []
        while numbers := self.numbers():
            try:
                return self.get(numbers[-1])
            except FileGoneError:  # expired since it was listed
                if numbers == before:
                    raise
                before = numbers
        return None

    def get(self, number: int) -> Snapshot:
        """A snapshot by its number.

        Raises:
            FileGoneError: There is none, or it has expired.
        """
        try:
            snapshot = self._read(f"snapshot/snapshot-{number}")
        except FileGoneError:
            numbers = self.numbers()
            existing = (
                f"there are {numbers[0]} to {numbers[-1]}" if numbers else "there is none yet"
            )
            raise FileGoneError(
                f"no snapshot {number}: {existing}", file=self._storage.location
            ) from None
        if snapshot.id != number:
            raise FormatError(
                "snapshot id", file=self.path(number), found=snapshot.id, expected=number
            )
        return snapshot

    def tag(self, name: str) -> Snapshot:
        """The snapshot of a tag.

        Raises:
            FileGoneError: There is no such tag.
        """
        if not name or "/" in name:
            raise UnsupportedError(f"tag: found {name!r}, expected a name")
        try:
            return self._read(f"tag/tag-{name}")
        except FileGoneError:
            tags = ", ".join(self.tags()) or "none"
            raise FileGoneError(
                f"no tag {name}: there are {tags}", file=self._storage.location
            ) from None

    def tags(self) -> list[str]:
        """The names of all tags."""
        paths = self._listed("tag")
        return sorted(
            path.removeprefix("tag/tag-") for path in paths if path.startswith("tag/tag-")
        )

    def numbers(self) -> list[int]:
        """The numbers of all snapshots, ascending."""
        paths = self._listed("snapshot")
        return sorted(int(match[1]) for path in paths if (match := _NAME.fullmatch(path)))

    def history(self, start: Snapshot | None) -> Iterator[Snapshot]:
        """A snapshot, then those before it that have not expired, the newest first."""
        if start is None:
            return
        yield start
        for number in reversed(self.numbers()):
            if number < start.id:
                try:
                    yield self.get(number)
                except FileGoneError:  # expired since they were listed, as are all before it
                    return

    def hint(self, snapshot: Snapshot) -> None:
        """Write the hints: the latest snapshot, and the earliest if it is the first.

        Readers do without, so failing to write one is no error.
        """
        names = _HINTS if snapshot.id == 1 else (_LATEST,)
        for name in names:
            self._storage.replace(self._folder + name, str(snapshot.id).encode())

    def hint_earliest(self, number: int) -> None:
        """Write the hint of the earliest snapshot, after those before it have expired."""
        self._storage.replace(self._folder + _EARLIEST, str(number).encode())

    def path(self, number: int) -> str:
        """The path of a snapshot in the table."""
        return snapshot_path(number, self._branch)

    def _listed(self, folder: str) -> list[str]:
        """The files of a folder of the branch, relative to the branch."""
        paths: list[str] = self._storage.list(self._folder + folder).paths.to_pylist()
        return [path.removeprefix(self._folder) for path in paths]

    def _hint(self, path: str) -> int | None:
        try:
            source = self._storage.source(self._folder + path)
            return int(source.read(0, source.size))
        except (FileGoneError, ValueError):
            return None

    def _read(self, path: str) -> Snapshot:
        source = self._storage.source(self._folder + path)
        return Snapshot.parse(source.read(0, source.size), file=source.name)
