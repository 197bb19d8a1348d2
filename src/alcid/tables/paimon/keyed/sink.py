"""`alcid.upsert_sink`: every batch of a stream is in the table once, whatever is killed when.

    batch 7 -> APPEND, identifier 7, mark {batch 7}  -> COMPACT, identifier 7, mark {batch 7}
            ^ killed before: written again           ^ killed here: only the COMPACT is made up for

A batch that is not later than the mark is in the table already. The mark is looked at once more in
the moment of the commit, so of two sinks that write the same batch one is refused.

Which batch of a stream a table has: the mark of a sink, in the properties of snapshots.

    property    alcid.sink.orders
    its text    {"batch": 7, "instance": "5f1e0c7a-...", "query": "c029bdcc-..."}

Each snapshot of a sink carries its mark, and so do later ones of this library. Those of Paimon's
Java drop it: then it is looked for in the snapshots before, as far as they have not expired.
"""

from __future__ import annotations

import json
import uuid
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from alcid.errors import (
    AlcidWarning,
    ConflictError,
    FormatError,
    OptionError,
    require,
)
from alcid.tables.paimon.keyed.commit import CommitAs, finish
from alcid.tables.paimon.keyed.level_zero import places_of, walk_back
from alcid.tables.paimon.keyed.upsert import (
    UpsertPlan,
    compacts,
    keyed_table,
    upsert,
)
from alcid.tables.paimon.metadata.commit import BATCH
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.paimon.write.writable import require_rows_writable
from alcid.tables.reports import UpsertReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["MarkSearch", "SinkMark", "UpsertSink", "upsert_sink"]

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


def upsert_sink(
    table: OpenPaimonTable, name: str, *, row_kind: str | None = None, write_only: bool = False
) -> UpsertSink:
    """Upsert each batch of a stream once: for `foreachBatch` of Spark.

        query = (
            stream.writeStream.foreachBatch(alcid.upsert_sink(t, "orders"))
            .option("checkpointLocation", checkpoint)
            .start()
        )

    A batch that Spark gives again, as it does after a crash, is written if it is not in the table,
    and passed over if it is. The sink knows by a mark in the snapshots of the table. If those have
    expired and Paimon's Java has committed since, nothing is known, and a batch that comes again is
    written again: that gives the same rows, unless others have written the same keys meanwhile.

    Who calls last has the name: a sink of the same name that is still alive elsewhere is refused
    at its next batch.

    Args:
        table: A table with a primary key.
        name: What tells this stream from others that go to the same table. It belongs to one
            checkpoint: one that begins anew needs a new name, as its batches count from 0 again.
        row_kind: As for `upsert`.
        write_only: As for `upsert`.

    Raises:
        OptionError: A name that is none.
        UnsupportedError: The table was opened as it was in the past, or takes no upserts.

    A batch may be an Arrow table, too:

    >>> import tempfile
    >>> import alcid, pyarrow as pa
    >>> folder, rows = tempfile.TemporaryDirectory(), pa.table({"id": [1, 2], "name": ["a", "b"]})
    >>> t = alcid.create_table(f"{folder.name}/t", rows.schema, primary_key=["id"])
    >>> sink = upsert_sink(t, "names")
    >>> [sink(rows, batch) is None for batch in (0, 0)]
    [False, True]
    >>> folder.cleanup()
    """
    require(name, str, "name")
    if not name.isprintable() or not name.strip():
        raise OptionError(f"name: found {name!r}, expected printable characters")
    table.committer()
    require_rows_writable(table.snapshot.schema, table.snapshot.options, "upsert")
    return UpsertSink(table, name, row_kind=row_kind, write_only=write_only)


class UpsertSink:
    """Takes batches; `upsert_sink` makes one."""

    def __init__(
        self, table: OpenPaimonTable, name: str, *, row_kind: str | None, write_only: bool
    ) -> None:
        """Nothing is done before the first batch."""
        self.table, self.name = table.apart(), name
        self._given = table
        self._row_kind, self._write_only = row_kind, write_only
        self._user, self._instance = f"alcid-sink-{name}", str(uuid.uuid4())
        self._search = MarkSearch(table.folder.snapshots, name)
        self._has_begun = False
        self._inherited: SinkMark | None = None  # the mark that was there at the first call

    def __call__(self, rows: Any, batch_id: int) -> UpsertReport | None:
        """Upsert a batch, if it is not in the table.

        Args:
            rows: A DataFrame of Spark, or an Arrow table or record batch.
            batch_id: Its number; later batches have greater ones, with or without gaps.

        Returns:
            What was done; None if the batch was there already.

        Raises:
            ConflictError: Another sink of the same name has written since this one began.
            OptionError: The name belongs to another streaming query.
        """
        if not 0 <= require(batch_id, int, "batch_id") < BATCH:
            raise OptionError(f"batch_id: found {batch_id}, expected 0 to {BATCH - 1}")
        query = self.table.engine.streaming_query(rows)
        mark = SinkMark(batch_id, self._instance, query)
        check, properties = partial(self._check, query=query), partial(self._properties, mark)
        commit = CommitAs(self._user, batch_id, properties, check)
        plan = UpsertPlan(row_kind=self._row_kind, write_only=self._write_only, commit=commit)
        self.table.refresh()
        state = self.table.snapshot.state
        if not self._has_begun:
            self._begin(state, batch_id)
        check(state)
        found = self._search.find(state.snapshot)
        if found is None or found.batch < batch_id:
            report = upsert(self.table, rows, plan)
            self._given.refresh()
            return report
        if found.batch == batch_id and compacts(self.table, plan):
            self._finish(state, commit)
            self._given.refresh()
        return None

    def _begin(self, state: TableState, batch_id: int) -> None:
        """Take the name over from whoever had it."""
        self._inherited = self._search.find(state.snapshot)
        self._has_begun = True
        if self._inherited is None and batch_id and not self._search.is_complete:
            warnings.warn(
                f"{self.table.location}: sink {self.name}: which batch was the last is not known, "
                f"as snapshots have expired: batch {batch_id} may be written a second time",
                AlcidWarning,
                stacklevel=3,
            )

    def _check(self, state: TableState, *, query: str | None) -> None:
        """See that the name is still that of this sink, in the state that is committed to."""
        found = self._search.find(state.snapshot)
        if found is None:
            return
        sink = f"{self.table.location}: sink {self.name}"
        if not self._is_fine(found):
            raise ConflictError(
                f"{sink}: another sink of this name is live, and has written batch {found.batch}: "
                "stop one of the two, or give it a name of its own"
            )
        if None not in (found.query, query) and found.query != query:
            raise OptionError(
                f"{sink}: batch {found.batch} came from another checkpoint: "
                "give this query a name of its own"
            )

    def _properties(self, mark: SinkMark, state: TableState) -> dict[str, str]:
        """The mark for a snapshot: the COMPACT of a batch keeps that of a sink that took over."""
        found = self._search.find(state.snapshot)
        if found is not None and not self._is_fine(found):
            mark = found
        return {SinkMark.key(self.name): mark.to_json()}

    def _is_fine(self, mark: SinkMark) -> bool:
        """Whether a mark is of this sink, or of the one that it took the name from."""
        return mark.instance == self._instance or mark == self._inherited

    def _finish(self, state: TableState, commit: CommitAs) -> None:
        """Make up for the COMPACT of a batch, if it is missing."""
        snapshots = self.table.folder.snapshots
        if places := places_of(snapshots, state, commit.upsert):
            with self.table.engine.settings():
                finish(self.table, keyed_table(self.table, "upsert"), places, commit)
