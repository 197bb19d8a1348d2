"""The peer's side: hash keys and assign buckets with pypaimon, in an environment of its own.

Reads one request a line, as JSON, and answers each with one line. It stands alone: of this project
nothing is imported. Columns come as Arrow files, which are read before the clocks start.

    {"request": "hash", "arrow": "keys.arrow", "times": 1}
        -> {"cpu": seconds, "wall": seconds, "answer": [hash, ...]}
    {"request": "assign", "arrow": "hashes.arrow", "times": 1, "target": 2000000,
     "known": false, "singly": false}
        -> {"cpu": seconds, "wall": seconds, "answer": [bucket, ...]}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pypaimon import Schema
from pypaimon.index.dynamic_bucket import HashBucketAssigner, to_signed_int32
from pypaimon.schema.table_schema import TableSchema
from pypaimon.write.row_key_extractor import DynamicBucketRowKeyExtractor

NO_PARTITION = ((), -1670924195)  # its values and its hash


def repeat(times: int, run: Callable[[], list[int]]) -> dict[str, Any]:
    """What all runs took, and the answer of the last."""
    answer: list[int] = []
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        answer = run()
    taken = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return taken | {"answer": answer}


def hash_keys(batch: Any, times: int) -> dict[str, Any]:
    """The hash of every row, by what its writer of dynamic buckets calls for a batch."""
    schema = Schema.from_pyarrow_schema(
        batch.schema, primary_keys=batch.schema.names, options={"bucket": "-1"}
    )
    extractor = DynamicBucketRowKeyExtractor(TableSchema.from_schema(0, schema))
    taken = repeat(times, lambda: extractor._extract_key_hashes_batch(batch))
    return taken | {"answer": [to_signed_int32(value) for value in taken["answer"]]}


def assign_buckets(
    batch: Any, times: int, target: int, known: bool, singly: bool
) -> dict[str, Any]:
    """The bucket of every hash, of a table without rows; or again, if they are known."""
    hashes = batch.column(0).to_pylist()
    values, partition_hash = NO_PARTITION

    def new_assigner() -> Any:
        return HashBucketAssigner(None, 1, 1, 0, target, -1, snapshot=None)

    def assign(assigner: Any) -> list[int]:
        if singly:
            return [assigner.assign(values, partition_hash, value) for value in hashes]
        count = len(hashes)
        found = assigner.assign_batch([values] * count, [partition_hash] * count, hashes)
        return [bucket for bucket, _ in found]

    if not known:
        return repeat(times, lambda: assign(new_assigner()))
    assigner = new_assigner()
    assign(assigner)
    return repeat(times, lambda: assign(assigner))


REQUESTS: dict[str, Callable[..., dict[str, Any]]] = {"hash": hash_keys, "assign": assign_buckets}


def main() -> None:
    """Serve until the input ends."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with pa.memory_map(request.pop("arrow")) as source:
            (batch,) = pa.ipc.open_file(source).read_all().to_batches()
        print(json.dumps(REQUESTS[request.pop("request")](batch, **request)), flush=True)


if __name__ == "__main__":
    main()
