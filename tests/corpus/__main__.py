"""Ask every file and table of a folder every question, with and without indexes.

    python -m tests.corpus FOLDER... [--kind parquet] [--only TEXT] [--questions 300]

Each subject has a process of its own: if Arrow aborts it, only that subject fails. The status is 1
if an answer was wrong, a process ended or anything but an error of Alcid's own family was raised;
what Alcid refuses is counted with its reasons.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from tests.corpus.asking import Outcome, check
from tests.corpus.subjects import KINDS, Subject, find_subjects

_SECONDS = 600
"""The seconds that a subject may take."""


def outcomes(subjects: Iterable[Subject], questions: int) -> Iterator[Outcome]:
    """Ask the subjects one after the other."""
    pool: ProcessPoolExecutor | None = None
    for subject in subjects:
        pool = pool or ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            yield pool.submit(check, subject, questions).result(_SECONDS)
        except BrokenProcessPool:
            yield Outcome(subject, failures=["the process ended"])
            pool = None
        except TimeoutError:
            for process in pool._processes.values():
                process.kill()
            yield Outcome(subject, failures=[f"no answer after {_SECONDS} s"])
            pool = None
    if pool is not None:
        pool.shutdown()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only subjects of this kind")
    parser.add_argument("--only", default="", help="only subjects whose path has this text")
    parser.add_argument("--questions", type=int, default=300, help="predicates of a subject")
    parser.add_argument("--verbose", action="store_true", help="a line for every subject")
    parsed = parser.parse_args(arguments)
    failed = False
    for folder in parsed.folders:
        subjects = [
            subject
            for subject in find_subjects(folder)
            if subject.kind in (parsed.kind or KINDS) and parsed.only in str(subject.path)
        ]
        results = outcomes(subjects, parsed.questions)
        failed |= _report(folder, list(_printed(folder, results, parsed.verbose)))
    return 1 if failed else 0


def _printed(folder: Path, results: Iterable[Outcome], verbose: bool) -> Iterator[Outcome]:
    for outcome in results:
        name = outcome.subject.path.relative_to(folder)
        state = "FAILED" if outcome.failures else "refused" if outcome.refusals else "equal"
        if verbose or outcome.failures:
            print(
                f"{state} {outcome.subject.kind} {name}: {outcome.questions} questions", flush=True
            )
        for text in outcome.failures:
            print(f"    {text}", flush=True)
        if verbose:
            for text in (*outcome.refusals, *outcome.notes):
                print(f"    {text}", flush=True)
        yield outcome


def _report(folder: Path, results: list[Outcome]) -> bool:
    """Print the counts of a folder; returns whether anything failed."""
    for kind in KINDS:
        those = [outcome for outcome in results if outcome.subject.kind == kind]
        if not those:
            continue
        failed = sum(bool(outcome.failures) for outcome in those)
        unread = sum(outcome.is_refused for outcome in those)
        questions = sum(outcome.questions for outcome in those)
        indexes = sum(outcome.indexes for outcome in those)
        print(
            f"{folder.name}: {len(those)} {kind}: {len(those) - failed - unread} equal,"
            f" {unread} refused, {failed} failed; {questions:,} questions, {indexes:,} indexes"
        )
    reasons = Counter(
        text.partition(": ")[2] for outcome in results for text in dict.fromkeys(outcome.refusals)
    )
    for reason, count in reasons.most_common(20):
        print(f"    refused {count} times: {reason}")
    return any(outcome.failures for outcome in results)


if __name__ == "__main__":
    sys.exit(main())
