"""Which batch of a stream a table has: the mark of a sink, in the properties of snapshots.

    property    alcid.sink.orders
    its text    {"batch": 7, "instance": "5f1e0c7a-...", "query": "c029bdcc-..."}

Each snapshot of a sink carries its mark, and so do later ones of this library. Those of Paimon's
Java drop it: then it is looked for in the snapshots before, as far as they have not expired.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from alcid.errors import FormatError
from alcid.paimon_metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.keyed.unsettled import walk_back

__all__ = ["MarkSearch", "SinkMark"]

_PREFIX = "alcid.sink."


@dataclass(frozen=True, slots=True)
class SinkMark:
    """What a sink leaves in its snapshots."""

    batch: int
    """The last batch that is in the table."""
    instance: str
    """The sink object that wrote it."""
    query: str | None = None
    """Spark's id of the streaming query, which lives as long as its checkpoint; None: no query."""

    @staticmethod
    def key(name: str) -> str:
        """The property that marks of a name are under."""
        return _PREFIX + name

    @classmethod
    def parse(cls, text: str, *, file: str) -> SinkMark:
        """Read the value of the property.

        Raises:
            FormatError: It is something else.

        >>> SinkMark.parse('{"batch": 7, "instance": "a", "query": null}', file="snapshot-3")
        SinkMark(batch=7, instance='a', query=None)
        """
        try:
            found = json.loads(text)
            mark = cls(found["batch"], found["instance"], found.get("query"))
        except (ValueError, TypeError, LookupError, AttributeError):
            mark = None
        if mark is None or type(mark.batch) is not int:
            raise FormatError("mark of a sink", file=file, found=repr(text)[:80])
        return mark

    def to_json(self) -> str:
        """The value of the property."""
        return json.dumps(asdict(self))


class MarkSearch:
    """Looks for the marks of a name, and does not look at the same snapshots again."""

    def __init__(self, snapshots: SnapshotFolder, name: str) -> None:
        """Nothing is read yet."""
        self._snapshots, self._key = snapshots, SinkMark.key(name)
        self._known: tuple[Snapshot, SinkMark | None] | None = None
        self.is_complete = True
        """False once a search has come to where older snapshots have expired."""

    def find(self, start: Snapshot | None) -> SinkMark | None:
        """The mark that holds at a snapshot.

        Raises:
            FormatError: A mark is damaged.
        """
        mark = self._find(start)
        if start is not None:
            self._known = start, mark
        return mark

    def _find(self, start: Snapshot | None) -> SinkMark | None:
        last = 1
        for snapshot in walk_back(self._snapshots, start):
            if self._known is not None and snapshot == self._known[0]:
                return self._known[1]
            text = (snapshot.properties or {}).get(self._key)
            if text is not None:
                return SinkMark.parse(text, file=snapshot_path(snapshot.id))
            last = snapshot.id
        self.is_complete = self.is_complete and last == 1
        if self._known is not None and self._known[0].id < last:
            return self._known[1]  # nothing was there since, as far as can be seen
        return None
