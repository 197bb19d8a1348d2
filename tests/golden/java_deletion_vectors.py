"""Deletion vectors of Paimon's Java: blobs alone, and the index files that hold many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.paimon_jvm import VERSION, PaimonJvm
from tests.golden.positions import SETS, WIDE_SETS, give_positions, positions_of
from tests.golden.values import Json, save

WRITER: dict[str, Json] = {"writer": "paimon-java", "version": VERSION}
OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true"}
CLASSES = {32: "BitmapDeletionVector", 64: "Bitmap64DeletionVector"}

# A file of vectors: data file -> bits, name of the set.
Vectors = Mapping[str, tuple[int, str]]
SMALL = [name for name in SETS if name not in ("array_4096", "bitset_4097", "mixed_containers")]
FILES: dict[str, Vectors] = {
    "none": {},
    "one_32": {"data-0.parquet": (32, "few")},
    "one_64": {"data-0.parquet": (64, "few")},
    "many_32": {f"data-{number}.parquet": (32, name) for number, name in enumerate(SMALL)},
    "many_64": {
        f"data-{number}.orc": (64, name) for number, name in enumerate([*SMALL, *WIDE_SETS])
    },
    "mixed": {
        "über 日本.parquet": (64, "three_keys"),
        "a.parquet": (32, "run"),
        "b.parquet": (64, "empty"),
        "c.parquet": (32, "empty"),
        "d.parquet": (64, "mixed_containers"),
        "e.parquet": (32, "mixed_containers"),
    },
}
_ORDER = ["few", "run", "scattered", "zero", "empty", "few", "run", "one", "zero", "few", "run"]
ROLLING: dict[str, tuple[int, Vectors]] = {  # with the size to roll at
    f"rolled_{bits}": (
        200,
        {f"data-{number}.parquet": (bits, name) for number, name in enumerate(_ORDER)},
    )
    for bits in (32, 64)
}
ROLLING["rolled_at_target"] = 61, {f"data-{number}.parquet": (32, "zero") for number in range(7)}
# Read again and merged with more: Java keeps a run if an array would have the same size.
MERGED: dict[str, tuple[str, Json]] = {
    "merged_run_kept": ("four_beside", [100]),
    "merged_runs": ("three_containers_of_runs", [[9, 12], [300_000, 300_003]]),
}


def set_of(name: str) -> Json:
    """The positions of a set."""
    return SETS[name] if name in SETS else WIDE_SETS[name]


def java_vector(jvm: PaimonJvm, bits: int, positions: Sequence[int]) -> Any:
    """A vector made by deleting one position after the other."""
    made = getattr(jvm.paimon.deletionvectors, CLASSES[bits])()
    owner = f"org.apache.paimon.deletionvectors.{CLASSES[bits]}"
    give_positions(jvm.gateway, jvm.method(owner, "delete", 1).bindTo(made), positions)
    return made


def write_deletion_vectors(jvm: PaimonJvm, folder: Path, table_of: Callable[..., Any]) -> None:
    """All files; index files are those of tables, with a name and options."""
    for bits in CLASSES:
        for name in [*SETS, *(WIDE_SETS if bits == 64 else ())]:
            vector = java_vector(jvm, bits, positions_of(set_of(name)))
            _save_vector(jvm, folder, f"vector{bits}_{name}", vector, bits, set_of(name))
        for name, (first, more) in MERGED.items():
            _save_merged(jvm, folder, f"vector{bits}_{name}", bits, set_of(first), more)
    empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
    table = table_of("vectors", OPTIONS)
    handler = table.store().newIndexFileHandler().dvIndex(empty, 0)
    for name, vectors in FILES.items():
        meta = handler.writeSingleFile(_java_map(jvm, vectors))
        _save_file(folder, f"file_{name}", handler, meta, vectors)
    for name, (target, vectors) in ROLLING.items():
        size = {"deletion-vector.index-file.target-size": f"{target} b"}
        table = table_of(name, OPTIONS | size)
        handler = table.store().newIndexFileHandler().dvIndex(empty, 0)
        metas = handler.writeWithRolling(_java_map(jvm, vectors))
        parts = [f"{name}_{part}" for part in range(len(metas))]
        for part, meta in zip(parts, metas, strict=True):
            _save_file(folder, part, handler, meta, vectors)
        facts: dict[str, Json] = {"kind": "deletion_vector_roll", **WRITER}
        save(folder, name, facts | {"target_size": target, "parts": parts})


def _save_vector(
    jvm: PaimonJvm,
    folder: Path,
    name: str,
    vector: Any,
    bits: int,
    positions: Json,
    exact: bool = True,
) -> None:
    out = jvm.java.io.ByteArrayOutputStream()
    length = vector.serializeTo(jvm.java.io.DataOutputStream(out))
    facts: dict[str, Json] = {"kind": "deletion_vector", **WRITER, "bits": bits}
    facts |= {} if exact else {"exact": False}
    facts |= {"cardinality": vector.getCardinality(), "length": length, "positions": positions}
    save(folder, name, facts, bytes(out.toByteArray()))


def _save_merged(
    jvm: PaimonJvm, folder: Path, name: str, bits: int, first: Json, more: Json
) -> None:
    interface = jvm.paimon.deletionvectors.DeletionVector
    written = interface.serializeToBytes(java_vector(jvm, bits, positions_of(first)))
    vector = interface.deserializeFromBytes(written)
    vector.merge(java_vector(jvm, bits, positions_of(more)))
    _save_vector(jvm, folder, name, vector, bits, [*first, *more], exact=False)


def _java_map(jvm: PaimonJvm, vectors: Vectors) -> Any:
    result = jvm.java.util.LinkedHashMap()
    for data_file, (bits, name) in vectors.items():
        result.put(data_file, java_vector(jvm, bits, positions_of(set_of(name))))
    return result


def _save_file(folder: Path, name: str, handler: Any, meta: Any, vectors: Vectors) -> None:
    data = Path(handler.path(meta).toString()).read_bytes()
    assert len(data) == meta.fileSize()
    listed: list[Json] = []
    for data_file, item in meta.dvRanges().items():
        bits, positions = vectors[data_file]
        range_ = {"offset": item.offset(), "length": item.length()}
        range_ |= {"cardinality": item.cardinality()}
        listed.append(
            {"data_file": data_file, **range_, "bits": bits, "positions": set_of(positions)}
        )
    facts: dict[str, Json] = {"kind": "deletion_vector_file", **WRITER}
    facts |= {"index_type": meta.indexType(), "row_count": meta.rowCount(), "vectors": listed}
    save(folder, name, facts, data)
