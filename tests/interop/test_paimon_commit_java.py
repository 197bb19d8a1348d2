"""Our commits as the released Paimon sees them: its reads, its writes, its expiry."""

from __future__ import annotations

from pathlib import Path

from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.tables.paimon.metadata.racing import race
from tests.tables.paimon.small_tables import append, create, ids, rows_of, swap_index


def java_ids(java: JavaPaimon, path: Path) -> list[int]:
    numbers: list[int] = java.read(path).column("id").to_pylist()
    return sorted(numbers)


def write(java: JavaPaimon, path: Path, numbers: range) -> None:
    java.write(path, rows_of(numbers), options={"write-only": "true"})


def test_java_reads_what_several_processes_committed_at_once(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = create(tmp_path)
    done = race(str(tmp_path), {}, rounds=16)
    left = {name for each in done for name in each.appended}
    left -= {name for each in done for name in each.deleted}
    assert java_ids(java_paimon, tmp_path) == sorted(left)
    write(java_paimon, tmp_path, range(-5, 0))
    java_paimon.compact(tmp_path)
    java_paimon.expire(tmp_path)
    assert java_ids(java_paimon, tmp_path) == ids(table) == [*range(-5, 0), *sorted(left)]


def test_java_reads_merged_manifests_and_expires_the_old_ones(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = create(tmp_path, options={"manifest.merge-min-count": "7"})
    entries = [append(table, [number]) for number in range(30)]
    for number in range(0, 30, 3):
        entries[number] = swap_index(table, entries[number], f"{number}.index")
    for number in range(30, 60):
        append(table, [number])
    assert len(table.snapshot.state.manifests) < 10
    assert java_ids(java_paimon, tmp_path) == list(range(60))
    assert java_paimon.expire(tmp_path) == 69
    assert java_ids(java_paimon, tmp_path) == ids(table) == list(range(60))
    left = {path.name for path in (tmp_path / "manifest").glob("manifest-[!l]*")}
    assert left == {meta.name for meta in table.snapshot.state.manifests}
    write(java_paimon, tmp_path, range(60, 70))
    for number in range(70, 80):  # on top of what Java wrote
        append(table, [number])
    java_paimon.compact(tmp_path)
    assert java_ids(java_paimon, tmp_path) == ids(table) == list(range(80))
    java_paimon.expire(tmp_path)
    assert java_ids(java_paimon, tmp_path) == ids(table) == list(range(80))


def test_we_read_manifests_that_java_merged(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = create(tmp_path, options={"manifest.merge-min-count": "3"})
    entry = append(table, range(10))
    for number in range(1, 8):
        write(java_paimon, tmp_path, range(10 * number, 10 * number + 10))
        table.refresh()
        entry = swap_index(table, entry, f"{number}.index")
    assert java_ids(java_paimon, tmp_path) == ids(table) == list(range(80))
