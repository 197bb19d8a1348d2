"""Ask one subject every question, with and without indexes, and compare with brute force."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from alcid.cli import main as command
from alcid.errors import AlcidError, AlcidWarning
from alcid.expressions import Predicate
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid.types import indexes_for
from tests.corpus.questions import columns_of, predicates
from tests.corpus.subjects import Subject
from tests.cross.data import Column
from tests.cross.truth import matches, ranks
from tests.datafiles.parquet.kit import assert_same

__all__ = ["Outcome", "check"]

_MOST_FAILURES = 5
"""For one subject; more of them would add nothing."""
_PREFIX = "alcid-corpus-"
_COPY = re.compile(rf"[^\s']*/{_PREFIX}\w+/")


@dataclass
class Outcome:
    """The outcome for a subject."""

    subject: Subject
    questions: int = 0
    indexes: int = 0
    refusals: list[str] = field(default_factory=list)
    """Errors of Alcid's own family, each with what was tried."""
    failures: list[str] = field(default_factory=list)
    """Wrong rows, other exceptions, findings of `verify`."""
    notes: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Record what a step raises, as a refusal or a failure."""
        try:
            yield
        except AlcidError as error:
            self.refuse(what, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001
            where = traceback.extract_tb(error.__traceback__)[-1]
            line = f"{Path(where.filename).name}:{where.lineno}"
            self.failures.append(f"{what}: {type(error).__name__}: {error} ({line})")

    def refuse(self, what: str, reason: str) -> None:
        """Record a refusal, without the folder that the copy lies in."""
        self.refusals.append(f"{what}: {_COPY.sub('', reason)}")

    @property
    def is_refused(self) -> bool:
        """Whether there was nothing to ask."""
        return bool(self.refusals) and not self.questions

    @property
    def is_done(self) -> bool:
        return len(self.failures) >= _MOST_FAILURES


def check(subject: Subject, questions: int) -> Outcome:
    """Ask a copy of the subject this many predicates, each in every way."""
    outcome = Outcome(subject)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX) as folder,
        _noting_warnings(outcome),
        outcome.step("open"),
    ):
        copy = subject.copy_to(Path(folder) / "subject")
        if subject.kind == "index":
            _inspect(outcome, copy)
        else:
            _Asked(outcome, subject, copy).run(questions)
    return outcome


@contextlib.contextmanager
def _noting_warnings(outcome: Outcome) -> Iterator[None]:
    """Alcid's own warnings become notes, and any other an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # Spark's sockets
        warnings.simplefilter("always", AlcidWarning)
        yield
    outcome.notes += sorted({str(warning.message) for warning in caught})


def _inspect(outcome: Outcome, copy: Path) -> None:
    """`alcid inspect` shows an index file, or ends with one line that says why not."""
    text = io.StringIO()
    with outcome.step("inspect"), contextlib.redirect_stdout(text):
        with contextlib.redirect_stderr(text):
            status = command(["inspect", str(copy)])
        if not status:
            outcome.questions += 1
        else:
            outcome.refuse("inspect", text.getvalue().strip())


class _Asked:
    """The table of a subject while it is tested."""

    def __init__(self, outcome: Outcome, subject: Subject, copy: Path) -> None:
        self._outcome, self._subject, self._copy = outcome, subject, copy
        self._table: ParquetTable | PaimonTable | IcebergTable = subject.open(copy)

    def run(self, most: int) -> None:
        outcome = self._outcome
        rows = self._all_rows()
        if rows is None:
            return
        columns = columns_of(rows)
        questions = predicates(columns, self._subject.path.name, most)
        for use_indexes in (False, True):
            self._ask_all(
                rows, columns, questions, use_indexes=use_indexes, state="without indexes"
            )
        if outcome.failures:
            return
        built = self._build(columns)
        if not built:
            return
        outcome.indexes += built
        self._ask_all(rows, columns, questions, "with indexes", use_indexes=True)
        with outcome.step("verify"):
            report = self._table.verify()
            if not report.ok:
                outcome.failures.append(f"verify: {report}")

    def _build(self, columns: Mapping[str, Column]) -> int:
        """Build every index that a column allows; returns how many there are."""
        pairs = [
            (index_type, name)
            for name, column in columns.items()
            if not any(character in name for character in ",[]")
            for index_type in indexes_for(column.data_type)
        ]
        if pairs and not self._try_build("build", pairs):  # one by one, to see which are refused
            if not self._try_build("build", pairs[:1]) and self._has_refused_twice():
                return 0  # whatever the column is
            pairs = [pair for pair in pairs if self._try_build(f"build {pair}", [pair])]
            if pairs:
                self._table.build_indexes(_options(pairs))
        return len(pairs)

    def _has_refused_twice(self) -> bool:
        """Whether the last two refusals say the same."""
        return len(set(self._outcome.refusals[-2:])) < len(self._outcome.refusals[-2:])

    def _try_build(self, what: str, pairs: Sequence[tuple[str, str]]) -> bool:
        problems = len(self._outcome.refusals) + len(self._outcome.failures)
        with self._outcome.step(what):
            self._table.build_indexes(_options(pairs))
        return problems == len(self._outcome.refusals) + len(self._outcome.failures)

    def _all_rows(self) -> pa.Table | None:
        """The correct rows, as the table shows them; None if there is nothing to ask."""
        outcome = self._outcome
        scanned: pa.Table | None = None
        with outcome.step("scan"):
            scanned = self._table.scan(use_indexes=False).to_arrow()
        if scanned is None:
            return None
        try:
            expected = self._subject.rows(self._copy)
        except Exception as error:  # noqa: BLE001 - the other reader fails where Alcid does not
            outcome.notes.append(f"only read by Alcid: {type(error).__name__}: {error}")
            return scanned
        if expected is None:
            return scanned
        with outcome.step("all rows"):
            if self._subject.kind == "iceberg":
                assert _texts(scanned) == _texts(expected)
            else:
                assert_same(scanned, expected.cast(scanned.schema, safe=False), valid=False)
        try:
            scanned.validate(full=True)
        except pa.ArrowInvalid as error:  # text that is no UTF-8: no literal can be made of it
            outcome.notes.append(f"only all rows were compared: {error}")
            return None
        return None if outcome.failures else scanned

    def _ask_all(
        self,
        rows: pa.Table,
        columns: Mapping[str, Column],
        questions: list[Predicate],
        state: str,
        *,
        use_indexes: bool,
    ) -> None:
        """Every predicate, and the first rows by every column."""
        outcome = self._outcome
        if outcome.is_done:
            return
        way = f"{state}, use_indexes={use_indexes}"
        for predicate in questions:
            with outcome.step(f"{way}: {predicate}"):
                outcome.questions += 1
                expected = np.flatnonzero(matches(columns, predicate))
                scan = self._table.scan(predicate, use_indexes=use_indexes)
                assert scan.count() == len(expected), "count"
                answer = scan.to_arrow()
                if answer.schema == rows.schema:  # entries of maps may have another name
                    answer = answer.cast(rows.schema)
                assert_same(answer, rows.take(pa.array(expected)))
            if outcome.is_done:
                return
        for name, column in columns.items():
            for descending in (False, True):
                order = f"`{name}` {'DESC' if descending else 'ASC'} NULLS LAST"
                with outcome.step(f"{way}: order by {order}"):
                    outcome.questions += 1
                    keys = ranks(column, descending=descending, nulls_first=False)
                    scan = self._table.scan(order_by=order, limit=5, use_indexes=use_indexes)
                    answered = columns_of(scan.to_arrow())[name]
                    codes = {repr(value): code for code, value in enumerate(column.values)}
                    rank_of = dict(zip(column.codes.tolist(), keys.tolist(), strict=True))
                    returned = [
                        rank_of[codes[repr(answered.values[code])]] for code in answered.codes
                    ]
                    assert returned == np.sort(keys)[:5].tolist(), "not the first rows"
            if outcome.is_done:
                return


def _options(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The options of a build, from index types and their columns."""
    names: dict[str, list[str]] = {}
    for index_type, name in pairs:
        names.setdefault(index_type, []).append(name)
    return {f"file-index.{key}.columns": ",".join(columns) for key, columns in names.items()}


def _texts(rows: pa.Table) -> Counter[str]:
    """How often each row occurs, in any order; maps are lists of pairs."""
    return Counter(map(repr, zip(*(column.to_pylist() for column in rows.columns), strict=True)))
