"""Every operation on every kind of table, with every fault at every call.

    python -m tests.faults [--runs N] [--seed S] [--subject NAME] [--operation NAME]

Without `--runs` all cases are run. A failed case is printed with the options that run it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.subjects import SUBJECTS
from tests.faults.sweep import cases, run_case


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--subject", choices=list(SUBJECTS))
    parser.add_argument("--operation")
    parser.add_argument("--remote", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = [arguments.subject] if arguments.subject else list(SUBJECTS)
        subjects = {
            name: SUBJECTS[name](Path(folder, name), remote=arguments.remote) for name in chosen
        }
        every = [
            (name, case)
            for name, subject in subjects.items()
            for operation in subject.operations
            if arguments.operation in (None, operation)
            for case in cases(subject, operation)
        ]
        if arguments.runs is not None:
            every = random.Random(arguments.seed).sample(every, min(arguments.runs, len(every)))
        begin, counts, failed = time.monotonic(), Counter[str](), 0
        for name, case in every:
            try:
                error = run_case(subjects[name], case)
                counts["right" if error is None else type(error).__name__] += 1
            except Exception as problem:  # noqa: BLE001 - any error is reported
                failed += 1
                text = str(problem) or repr(problem)
                print(f"FAILED {name} {case}: {type(problem).__name__}: {text[:600]}", flush=True)
    print(
        f"{len(every)} cases, {failed} failed, in {time.monotonic() - begin:.0f} s: {dict(counts)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
