"""Some of the cases of `python -m tests.faults`: the same ones every time."""

from __future__ import annotations

import random

import pytest

from tests.faults.subjects import SUBJECTS, Subject
from tests.faults.sweep import cases, run_case, run_often

CASES = 4  # for each operation: all of them take an hour


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return SUBJECTS[request.param](tmp_path_factory.mktemp(request.param))


def check_some(subject: Subject, count: int) -> None:
    """Run some cases of each operation."""
    for operation in subject.operations:
        source = random.Random(f"{type(subject).__name__} {operation}")
        for case in source.sample(list(cases(subject, operation)), count):
            try:
                run_case(subject, case)
            except Exception as error:
                error.add_note(f"{type(subject).__name__}: {case}")
                raise


def test_an_answer_is_right_or_an_error_and_the_next_try_succeeds(subject: Subject) -> None:
    check_some(subject, CASES)


def test_the_same_holds_where_calls_fail_all_along(subject: Subject) -> None:
    for seed, operation in enumerate(subject.operations):
        run_often(subject, operation, seed)


def test_the_same_holds_over_a_network(tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("paimon", "parquet"):
        check_some(SUBJECTS[name](tmp_path_factory.mktemp(name), remote=True), 1)
