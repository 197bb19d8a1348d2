"""`alcid.upsert_sink`: every batch of a stream is committed once, whatever is killed when.

    batch 7 -> APPEND, identifier 7, progress 7  -> COMPACT, identifier 7, progress 7
            ^ killed before: written again        ^ killed here: only the COMPACT is missing

The progress of a sink is a property of its snapshots:

    property    alcid.sink.orders
    its value   {"batch": 7, "instance": "5f1e0c7a-...", "query": "c029bdcc-..."}

A batch that is not later than this is in the table already. The property is checked once more
within the commit, so of two sinks that write the same batch one is refused. Later snapshots of this
library keep the property. Those of Paimon's Java drop it: then it is looked for in the snapshots
before, as far as they have not expired.
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
from alcid.tables.paimon.keyed.commit import CommitIdentity, finish_upsert, pending_buckets
from alcid.tables.paimon.keyed.upsert import (
    UpsertPlan,
    compacts,
    keyed_table,
    upsert,
)
from alcid.tables.paimon.metadata.commit import BATCH
from alcid.tables.paimon.metadata.options import require_rows_writable
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.reports import UpsertReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_PREFIX = "alcid.sink."


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How far a sink has come, as a property of its snapshots."""

    batch: int
    """The last batch that is committed."""
    instance: str
    """The id of the sink object that committed it."""
    query: str | None = None
    """Spark's id of the streaming query, which lives as long as its checkpoint; None: no query."""

    @staticmethod
    def key(name: str) -> str:
        """The property of a sink of this name."""
        return _PREFIX + name

    @classmethod
    def parse(cls, text: str, *, file: str) -> SinkProgress:
        """Parse the value of the property.

        Raises:
            FormatError: It is damaged.

        >>> SinkProgress.parse('{"batch": 7, "instance": "a", "query": null}', file="snapshot-3")
        SinkProgress(batch=7, instance='a', query=None)
        """
        try:
            fields = json.loads(text)
            progress = cls(fields["batch"], fields["instance"], fields.get("query"))
        except (ValueError, TypeError, LookupError, AttributeError):
            progress = None
        if progress is None or type(progress.batch) is not int:
            raise FormatError("progress of a sink", file=file, found=repr(text)[:80])
        return progress

    def to_json(self) -> str:
        """The value of the property."""
        return json.dumps(asdict(self))


class ProgressSearch:
    """Finds the progress of a sink; snapshots are not searched twice."""

    def __init__(self, snapshots: SnapshotFolder, name: str) -> None:
        """Take the snapshots, and the name of the sink."""
        self._snapshots, self._key = snapshots, SinkProgress.key(name)
        self._last: tuple[Snapshot, SinkProgress | None] | None = None
        self.is_complete = True
        """False once a search has reached expired snapshots."""

    def find(self, start: Snapshot | None) -> SinkProgress | None:
        """The progress at a snapshot.

        Raises:
            FormatError: The property is damaged.
        """
        progress = self._find(start)
        if start is not None:
            self._last = start, progress
        return progress

    def _find(self, start: Snapshot | None) -> SinkProgress | None:
        oldest = 1
        for snapshot in self._snapshots.history(start):
            if self._last is not None and snapshot == self._last[0]:
                return self._last[1]
            text = (snapshot.properties or {}).get(self._key)
            if text is not None:
                return SinkProgress.parse(text, file=snapshot_path(snapshot.id))
            oldest = snapshot.id
        self.is_complete = self.is_complete and oldest == 1
        if self._last is not None and self._last[0].id < oldest:
            return self._last[1]  # nothing since, as far as can be seen
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

    A batch that Spark repeats, as it does after a crash, is written if it is not in the table, and
    skipped if it is. The sink knows by a property of the table's snapshots. If these have expired
    and Paimon's Java has committed since, it does not know, and writes a repeated batch again: that
    gives the same rows, unless others have written the same keys meanwhile.

    The last caller owns the name: a sink of the same name that is still alive elsewhere is refused
    at its next batch.

    Args:
        table: A table with a primary key.
        name: Identifies this stream among others that write to the same table. It belongs to one
            checkpoint: a new checkpoint needs a new name, as its batches count from 0 again.
        row_kind: As for `upsert`.
        write_only: As for `upsert`.

    Raises:
        OptionError: An invalid name.
        UnsupportedError: The table was opened at a past snapshot, or does not support upserts.

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
    """Upserts batches; `upsert_sink` creates one."""

    def __init__(
        self, table: OpenPaimonTable, name: str, *, row_kind: str | None, write_only: bool
    ) -> None:
        """Take the table; nothing is read before the first batch."""
        self.table, self.name = table.apart(), name
        self._original = table
        self._row_kind, self._write_only = row_kind, write_only
        self._user, self._instance = f"alcid-sink-{name}", str(uuid.uuid4())
        self._search = ProgressSearch(table.folder.snapshots, name)
        self._has_begun = False
        self._inherited: SinkProgress | None = None  # the progress at the first call

    def __call__(self, rows: Any, batch_id: int) -> UpsertReport | None:
        """Upsert a batch, if it is not in the table.

        Args:
            rows: A DataFrame of Spark, or an Arrow table or record batch.
            batch_id: Its number; later batches have greater ones, with or without gaps.

        Returns:
            The outcome; None if the batch is in the table already.

        Raises:
            ConflictError: Another sink of the same name has written since this one began.
            OptionError: The name belongs to another streaming query.
        """
        if not 0 <= require(batch_id, int, "batch_id") < BATCH:
            raise OptionError(f"batch_id: found {batch_id}, expected 0 to {BATCH - 1}")
        query = self.table.engine.streaming_query(rows)
        progress = SinkProgress(batch_id, self._instance, query)
        check, properties = partial(self._check, query=query), partial(self._properties, progress)
        commit = CommitIdentity(self._user, batch_id, properties, check)
        plan = UpsertPlan(row_kind=self._row_kind, write_only=self._write_only, commit=commit)
        self.table.refresh()
        state = self.table.snapshot.state
        if not self._has_begun:
            self._begin(state, batch_id)
        check(state)
        committed = self._search.find(state.snapshot)
        if committed is None or committed.batch < batch_id:
            report = upsert(self.table, rows, plan)
            self._original.refresh()
            return report
        if committed.batch == batch_id and compacts(self.table, plan):
            self._finish(state, commit)
            self._original.refresh()
        return None

    def _begin(self, state: TableState, batch_id: int) -> None:
        """Take the name over from the sink that had it."""
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
        """Check that this sink still owns its name, in the state that it commits to."""
        committed = self._search.find(state.snapshot)
        if committed is None:
            return
        sink = f"{self.table.location}: sink {self.name}"
        if not self._is_own(committed):
            raise ConflictError(
                f"{sink}: another sink of this name is live, and has written batch "
                f"{committed.batch}: stop one of the two, or give it a name of its own"
            )
        if None not in (committed.query, query) and committed.query != query:
            raise OptionError(
                f"{sink}: batch {committed.batch} came from another checkpoint: "
                "give this query a name of its own"
            )

    def _properties(self, progress: SinkProgress, state: TableState) -> dict[str, str]:
        """The property of a snapshot: a COMPACT keeps that of a sink that took over."""
        committed = self._search.find(state.snapshot)
        if committed is not None and not self._is_own(committed):
            progress = committed
        return {SinkProgress.key(self.name): progress.to_json()}

    def _is_own(self, progress: SinkProgress) -> bool:
        """Whether it is of this sink, or of the one that this sink took the name from."""
        return progress.instance == self._instance or progress == self._inherited

    def _finish(self, state: TableState, commit: CommitIdentity) -> None:
        """Commit the COMPACT of a batch, if it is missing."""
        snapshots = self.table.folder.snapshots
        if buckets := pending_buckets(snapshots, state, commit.upsert):
            with self.table.engine.settings():
                finish_upsert(self.table, keyed_table(self.table, "upsert"), buckets, commit)
