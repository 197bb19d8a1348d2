"""The garbage collector is off while many objects are made, and always on again thereafter."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import alcid
from alcid.tables.paimon import files
from alcid.tables.paimon.metadata import table_state
from alcid.tables.paimon.metadata.records import uncollected
from tests.tables.paimon import small_tables


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_as_before_thereafter() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


def test_a_table_is_opened_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_tables.create(tmp_path / "t", {"id": "BIGINT", "name": "STRING"}, options={})
    small_tables.append(table, [1, 2])
    seen: list[tuple[str, bool]] = []
    for module, name in (table_state, "read_manifest"), (files, "place_files"):
        real = getattr(module, name)

        def watched(*arguments: Any, _real: Any = real, _name: str = name, **named: Any) -> Any:
            seen.append((_name, gc.isenabled()))
            return _real(*arguments, **named)

        monkeypatch.setattr(module, name, watched)
    assert alcid.paimon(tmp_path / "t").count() == 2
    assert seen == [("read_manifest", False), ("place_files", False)]
    assert gc.isenabled()
