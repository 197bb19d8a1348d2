"""Random combinations of all levels, for as long as you like.

    python -m tests.cross --seconds 3600 --seed 1 --workers 2

A table is asked many questions, each in all ways; each way is a case. A case that fails is printed
as one line, which `--case` asks again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.cross.asking import ask, described
from tests.cross.factors import FACTORS, Case, draw
from tests.cross.long_run import run


def _replay(line: str) -> int:
    case = Case.parse(line)
    if "shape" not in case.levels:  # the table itself could not be made
        case = Case(draw(FACTORS, random.Random(0), **case.levels), case.table, case.question)
    for name, value in described(case).items():
        print(f"{name}: {value!r}", flush=True)
    try:
        ask(case)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return 1
    print("right")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cross")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--case", help="a line of a failure: ask it again")
    arguments = parser.parse_args()
    if arguments.case is not None:
        return _replay(arguments.case)
    began = time.monotonic()
    seeds = [f"{arguments.seed}/{worker}" for worker in range(arguments.workers)]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(run, seeds, [arguments.seconds] * arguments.workers))
    took = time.monotonic() - began
    cases, failures = (
        sum(result.cases for result in results),
        sum(result.failures for result in results),
    )
    processor = sum(result.seconds for result in results)
    print(
        f"{cases:,} cases, {sum(result.tables for result in results):,} tables, "
        f"{failures:,} failed; "
        f"{cases / took:.1f} cases a second, {cases / processor:.1f} a second of processor"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
