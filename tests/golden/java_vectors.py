"""Vectors (hashes, sizes of bloom filters, Roaring bytes) and what the release refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.payload_columns import EDGES, KINDS
from tests.golden.values import Json, distinct, save

ITEMS = (1, 2, 7, 8, 40, 64, 100, 333, 1000, 12_345, 1_000_000)
FPPS = ("0.5", "0.1", "0.05", "0.03", "0.01", "0.001", "0.000001", "0.9")
NESTED = ["VARIANT", "ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT>"]
OTHER = [
    "DECIMAL(19, 0)",
    "TIMESTAMP(7)",
    "TIMESTAMP(7) WITH LOCAL TIME ZONE",
    "TIME(0)",
    "TIME(9)",
]


def write_vectors(jvm: PaimonJvm, folder: Path) -> None:
    """All files without bytes of their own."""
    save(folder, "vectors_bloom", {"kind": "vectors", **_bloom(jvm)})
    save(folder, "vectors_roaring", {"kind": "vectors", "vectors": _roaring(jvm)})
    for kind, (index_type, options, _) in KINDS.items():
        types = [
            {"type": sql, "outcome": _refusal(jvm, index_type, sql, options)}
            for sql in [*EDGES, *OTHER, *NESTED]
        ]
        extra: dict[str, Json] = {}
        if kind == "bitmap_v2":
            extra["v2_long_string"] = [
                {"string_length": length, "outcome": _long_string(jvm, length)}
                for length in (16_368, 16_369)
            ]
            extra["version_3"] = outcome(
                jvm, lambda: jvm.write("bitmap", "INT", {"version": "3"}, [1])
            )
        if kind == "bsi":
            extra["long_min"] = outcome(jvm, lambda: jvm.write("bsi", "BIGINT", {}, [-(2**63)]))
            extra["decimal_too_long"] = outcome(
                jvm, lambda: jvm.write("bsi", "DECIMAL(19, 0)", {}, [str(2**63)])
            )
        save(folder, f"{kind}_errors", {"kind": "errors", "types": types, **extra})


def _bloom(jvm: PaimonJvm) -> dict[str, Json]:
    hashes = []
    hashing = jvm.paimon.fileindex.bloomfilter.FastHash
    call = jvm.method("org.apache.paimon.fileindex.bloomfilter.FastHash", "hash", 1)
    hashed_types = KINDS["bloom"][2]
    for sql in hashed_types:
        bound = call.bindTo(hashing.getHashFunction(jvm.data_type(sql)))
        for value in distinct(EDGES[sql][0] + EDGES[sql][1]):
            number = bound.invokeWithArguments(jvm.values(sql, [value]))
            hashes.append({"type": sql, "value": value, "hash": f"{number % 2**64:016x}"})
    sizing = []
    for items in ITEMS:
        for fpp in FPPS:
            made = jvm.paimon.utils.BloomFilter64(items, float(fpp))
            bits, k = made.getBitSet().bitSize(), made.getNumHashFunctions()
            sizing.append({"items": items, "fpp": fpp, "num_bits": bits, "k": k})
    types = [{"type": sql, "supported": sql in hashed_types} for sql in EDGES]
    return {"hashes": hashes, "sizing": sizing, "types": types}


def _roaring(jvm: PaimonJvm) -> list[Json]:
    """Ranges whose containers are at, just below and just above every limit of the format."""
    every_other = [[2 * n, 2 * n + 1] for n in range(60)]
    cases: list[list[list[int]]] = [
        [],
        [[0, 1]],
        [[9, 10]],
        [[65_535, 65_537]],
        [[131_072, 131_073]],
        [[3, 5]],
        [[3, 6]],  # 3 values in a run: array, 6 bytes each way
        [[3, 7]],
        [[0, 3], [10, 12]],
        [[0, 3], [10, 13]],
        [[0, 4096]],
        [[0, 4097]],
        [[0, 65_536]],
        [[5, 140_000]],
        [[0, 10], [70_000, 70_010], [140_000, 140_010]],
        [[n << 16, (n << 16) + 9] for n in range(4)],  # run containers, with offsets from four on
        [[n << 16, (n << 16) + 9] for n in range(9)],  # run flags in two bytes
        every_other,
        [*every_other, [65_536, 66_000], [200_000, 200_001]],
    ]
    cases += [[[4 * n, 4 * n + 3] for n in range(runs)] for runs in (1366, 2047, 2048)]
    cases += [[[2 * n, 2 * n + 1] for n in range(values)] for values in (4096, 4097)]
    return [_roaring_vector(jvm, ranges) for ranges in cases]


def _roaring_vector(jvm: PaimonJvm, ranges: list[list[int]]) -> Json:
    bitmap = jvm.bitmap(ranges)
    data = bytes(bitmap.serialize())
    out = jvm.java.io.ByteArrayOutputStream()
    bitmap.serialize(jvm.java.io.DataOutputStream(out))
    return {
        "ranges": ranges,
        "length": len(data),
        "sha1": hashlib.sha1(data).hexdigest(),
        "hex": data.hex() if len(data) <= 500 else None,
        "stream_equal": bytes(out.toByteArray()) == data,
    }


def outcome(jvm: PaimonJvm, act: Callable[[], bytes]) -> str:
    """`ok` and the length of what was written, or `error`, class and message."""
    from py4j.protocol import Py4JJavaError

    try:
        return f"ok {len(act())}"
    except Py4JJavaError as error:
        return f"error {': '.join(jvm.failure(error))}"


def _refusal(jvm: PaimonJvm, index_type: str, sql: str, options: dict[str, str]) -> str:
    """`ok`, or the class of what a writer of that type throws, with one null row."""
    answer = outcome(jvm, lambda: jvm.write(index_type, sql, options, [None]))
    return answer.split(" ")[0] if answer.startswith("ok") else answer.split(" ")[1].rstrip(":")


def _long_string(jvm: PaimonJvm, length: int) -> str:
    return outcome(jvm, lambda: jvm.write("bitmap", "STRING", {"version": "2"}, ["s" * length]))
