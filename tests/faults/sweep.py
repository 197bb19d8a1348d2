"""An operation on a table whose files fail at one call: the conditions then, and afterwards.

The answer is correct, or there is an error of Alcid. The table has its old rows or the new ones,
and nothing in between. Once files no longer fail, the same operation succeeds, `verify` finds
nothing wrong, and `clean` leaves no other files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from alcid.errors import AlcidError, AlcidWarning
from alcid.testing.faults import (
    Call,
    Decide,
    Fault,
    often,
    once,
    since,
)
from tests.faults.operations import AT_ONCE, AnyTable, Operation, Rows, table_rows
from tests.faults.subjects import Subject

__all__ = ["Case", "cases", "check_after", "check_answer", "count_calls", "run_case", "run_often"]

PASSING = {Fault.TIMEOUT, Fault.LOST_TIMEOUT, Fault.STALE}
"""Faults that nobody may notice if they happen once; over a network also short reads."""

OFTEN = (
    *(Fault.TIMEOUT, Fault.REFUSED, Fault.LOST_TIMEOUT, Fault.LOST_REFUSED),
    *(Fault.SHORT, Fault.STALE),
)
"""Faults that may happen to any call."""


class Opens(Protocol):
    """Opens a table in its current state."""

    def open(self) -> AnyTable: ...


@dataclass(frozen=True)
class Case:
    """The fault, and its time."""

    operation: str
    fault: Fault
    number: int
    lasts: bool
    """Whether all later calls fail as well."""

    @property
    def decide(self) -> Decide:
        return (since if self.lasts else once)(self.number, self.fault)

    def must_succeed(self, *, remote: bool) -> bool:
        if self.lasts:
            return self.fault is Fault.SLOW
        return self.fault in PASSING or (self.fault is Fault.SHORT and remote)


def count_calls(subject: Subject, operation: str) -> list[Call]:
    """The calls of a run in which nothing fails."""
    subject.restore()
    with subject.patched():
        subject.faults.plan(None)
        subject.operations[operation].run(subject.open())
        return subject.faults.calls


def cases(subject: Subject, operation: str) -> Iterator[Case]:
    """Every call of an operation with every fault that fits it."""
    yield Case(operation, Fault.SLOW, 0, lasts=True)
    for call in count_calls(subject, operation):
        for fault in Fault:
            if _is_tried(fault, call):
                for lasts in (False, True):
                    yield Case(operation, fault, call.number, lasts)


def _is_tried(fault: Fault, call: Call) -> bool:
    """Whether a fault fits a call.

    A snapshot is never half written: on a disk it gets its name when it is whole, on S3 it is one
    request. `test_half_a_snapshot_is_reported` checks the error for one.
    """
    is_half = fault in {Fault.HALF_TIMEOUT, Fault.HALF_REFUSED}
    if fault is Fault.SLOW or (is_half and call.path.startswith("snapshot/snapshot-")):
        return False
    return fault.fits(call.kind)


def run_case(subject: Subject, case: Case) -> AlcidError | None:
    """Run one case and check everything; returns the error, if there was one."""
    must_succeed = case.must_succeed(remote=subject.faults.remote)
    return _run(subject, case.operation, case.decide, must_succeed=must_succeed)


def run_often(subject: Subject, operation: str, seed: int) -> AlcidError | None:
    """The same with faults all the time."""
    return _run(subject, operation, often(0.03, OFTEN, seed), must_succeed=False)


def _run(subject: Subject, name: str, decide: Decide, *, must_succeed: bool) -> AlcidError | None:
    operation = subject.operations[name]
    subject.restore()
    with subject.patched(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AlcidWarning)
        subject.faults.plan(decide)
        error = _attempt(subject, operation, must_succeed=must_succeed)
        subject.faults.plan(None)
        if error is not None and not operation.is_repeatable:
            _check_told(subject, operation, error)
        check_after(subject, operation, subject.before, is_done=error is None)
    return error


def _attempt(subject: Subject, operation: Operation, *, must_succeed: bool) -> AlcidError | None:
    try:
        answer = operation.run(subject.open())
    except AlcidError as error:
        if must_succeed:
            raise
        return error
    if must_succeed or not operation.is_told:
        check_answer(operation, answer)
    return None


def _check_told(subject: Subject, operation: Operation, error: AlcidError) -> None:
    """Check that an error says if all was done nevertheless: it must not be repeated."""
    if table_rows(subject.open()) == operation.after:
        assert re.search("rows are appended|commit was made is not known", str(error)), repr(error)


def check_answer(operation: Operation, answer: Any) -> None:
    """Check an answer."""
    if operation.answer is not None:
        assert answer == operation.answer, f"{answer}, expected {operation.answer}"


def check_after(subject: Opens, operation: Operation, before: Rows, *, is_done: bool) -> None:
    """Check the table's rows, repeat the operation, and check that nothing is wrong or left."""
    table = subject.open()
    rows = table_rows(table)
    is_some = operation.rest is not None and _is_between(before, rows, operation.after)
    assert rows == operation.after or ((rows == before or is_some) and not is_done), f"holds {rows}"
    if operation.only_reads:
        return
    if operation.rest is not None and rows != operation.after:
        operation.rest(table, rows)
    elif rows != operation.after or operation.is_repeatable:
        check_answer(operation, operation.run(table))
    table = subject.open()
    assert table_rows(table) == operation.after
    report = table.verify(progress=False)
    assert report.ok, report
    for _ in range(2):  # the first merges bundles, and the second removes the old ones
        if report.leftovers:
            table.clean(AT_ONCE)
            report = table.verify(progress=False)
            assert report.ok, report
    assert not report.leftovers, report.leftovers
    assert table_rows(subject.open()) == operation.after


def _is_between(before: Rows, rows: Rows, after: Rows) -> bool:
    """Whether some rows were already written, each once."""
    return set(before) <= set(rows) <= set(after) and len(set(rows)) == len(rows)
