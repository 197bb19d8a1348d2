"""`snapshot/snapshot-<n>`: the table at one moment, as JSON; and the folder of snapshots and tags.

A snapshot names two manifest lists. That of the *base* holds the manifests of the snapshot before,
that of the *delta* those that its commit added; together they are all data files. Deletion vectors
and hash indexes are in one index manifest, which holds all of them.
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

__all__ = ["COMMIT_KINDS", "MAIN", "Snapshot", "SnapshotFolder", "branch_folder", "snapshot_path"]

MAIN = "main"
"""The branch that a table has without any being made."""

COMMIT_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")

_VERSION = 3
_NAME = re.compile(r"snapshot/snapshot-(\d+)")
_HINTS = _LATEST, _EARLIEST = "snapshot/LATEST", "snapshot/EARLIEST"
_OF_ONE_COMMIT = ("changelogManifestListSize", "operation", "uuid", "writerVersion")
"""What Paimon's own commits say of themselves alone."""
_REQUIRED = (
    *("id", "schema_id", "base_manifest_list", "delta_manifest_list"),
    *("commit_user", "commit_identifier", "commit_kind", "time_millis"),
)


def branch_folder(branch: str) -> str:
    """The folder of the schemas, snapshots and tags of a branch, with a `/` at its end.

    Manifests and data files of all branches lie in the folder of the table.

    Raises:
        UnsupportedError: No name of a branch.

    >>> branch_folder("test"), branch_folder("main")
    ('branch/branch-test/', '')
    """
    if not branch or "/" in branch:
        raise UnsupportedError(f"branch: found {branch!r}, expected a name")
    return "" if branch == MAIN else f"branch/branch-{branch}/"


def snapshot_path(number: int, branch: str = MAIN) -> str:
    """Where a snapshot lies in the folder of its table."""
    return f"{branch_folder(branch)}snapshot/snapshot-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a snapshot says."""

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
    """What else the JSON says."""

    @property
    def inherited(self) -> dict[str, Any]:
        """What a newer Paimon says in it, and the next snapshot has to say as well."""
        return {name: value for name, value in self.extra.items() if name not in _OF_ONE_COMMIT}

    @classmethod
    def parse(cls, data: bytes, *, file: str = "<snapshot>") -> Snapshot:
        """Read the JSON of a snapshot, or of a tag, which is one with more to it.

        Raises:
            FormatError: It is damaged.
        """
        found = parse_json(data, file)
        version = found.pop("version", 1)
        if not isinstance(version, int) or version > _VERSION:
            raise FormatError("snapshot version", file=file, found=version, expected=_VERSION)
        known = {name: found.pop(_json_name(name), None) for name in _NAMES}
        for name in _REQUIRED:
            if known[name] is None:
                raise FormatError(f"snapshot without {_json_name(name)}", file=file)
        for name, value in known.items():
            expected: type = _KINDS[name]
            if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
                raise FormatError(
                    f"snapshot: {_json_name(name)}",
                    file=file,
                    found=repr(value)[:80],
                    expected=expected.__name__,
                )
        return cls(**known, extra=found)

    def to_json(self) -> bytes:
        """As Paimon writes it; what is not known is left out."""
        known = {_json_name(name): getattr(self, name) for name in _NAMES}
        given = {name: value for name, value in known.items() if value is not None}
        return to_json({"version": _VERSION, **given, **self.extra})


_NAMES = tuple(one.name for one in fields(Snapshot) if one.name != "extra")
_KINDS: dict[str, type] = {
    one.name: str if str(one.type).startswith("str") else int
    for one in fields(Snapshot)
    if one.name in _NAMES
} | {"properties": dict}


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


class SnapshotFolder:
    """The snapshots and tags of a branch of a table."""

    def __init__(self, storage: Storage, branch: str = MAIN) -> None:
        """Nothing is read yet; `storage` is the folder of the table."""
        self._storage, self._branch = storage, branch
        self._folder = branch_folder(branch)

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for a table to which nothing was ever committed.

        The hint `LATEST` is where the search begins: it may be behind, or wrong.
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
            found = self._read(f"snapshot/snapshot-{number}")
        except FileGoneError:
            known = self.numbers()
            there = f"there are {known[0]} to {known[-1]}" if known else "there is none yet"
            raise FileGoneError(
                f"no snapshot {number}: {there}", file=self._storage.location
            ) from None
        if found.id != number:
            raise FormatError(
                "snapshot id", file=self.path(number), found=found.id, expected=number
            )
        return found

    def tag(self, name: str) -> Snapshot:
        """The snapshot that a tag keeps.

        Raises:
            FileGoneError: There is no such tag.
        """
        if not name or "/" in name:
            raise UnsupportedError(f"tag: found {name!r}, expected a name")
        try:
            return self._read(f"tag/tag-{name}")
        except FileGoneError:
            known = ", ".join(self.tags()) or "none"
            raise FileGoneError(
                f"no tag {name}: there are {known}", file=self._storage.location
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
        return sorted(int(found[1]) for path in paths if (found := _NAME.fullmatch(path)))

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
        """Say which snapshot is the newest; and the earliest, if it is the first.

        Readers do without, so a hint that could not be written is no failure.
        """
        names = _HINTS if snapshot.id == 1 else (_LATEST,)
        for name in names:
            self._storage.replace(self._folder + name, str(snapshot.id).encode())

    def path(self, number: int) -> str:
        """Where a snapshot lies in the folder of the table."""
        return snapshot_path(number, self._branch)

    def _listed(self, folder: str) -> list[str]:
        """The files of a folder of the branch, by their paths in it."""
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
