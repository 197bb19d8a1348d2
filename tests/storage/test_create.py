"""Names that several try to take, and files that are replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alcid.errors import NameTakenError
from alcid.storage import Storage


def _take(storage: Storage, name: str, who: int) -> bool:
    try:
        storage.create(name, f"written by {who}".encode())
    except NameTakenError:
        return False
    return True


def test_one_of_several_gets_a_name(storage: Storage) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(5 if storage.remote else 50):
            name = f"snapshot/snapshot-{number}"
            won = list(pool.map(lambda who, name=name: _take(storage, name, who), range(4)))
            assert sum(won) == 1
            assert storage.source(name).read(0, 12) == f"written by {won.index(True)}".encode()


def test_a_file_is_replaced(storage: Storage) -> None:
    for text in (b"1", b"22", b"3"):
        storage.replace("snapshot/LATEST", text)
        source = storage.source("snapshot/LATEST")
        assert source.read(0, source.size) == text
    assert storage.list("snapshot", hidden=True).paths.to_pylist() == ["snapshot/LATEST"]


def test_nothing_is_left_beside_a_replaced_file(tmp_path: Path) -> None:
    Storage.open(tmp_path).replace("LATEST", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["LATEST"]
