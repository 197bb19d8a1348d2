"""The tables of these tests are small; their indexes are asked nevertheless."""

from __future__ import annotations

import pytest

from tests.tables.paimon.index_contents import ask_always


@pytest.fixture(autouse=True)
def _asked_whatever_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_always(monkeypatch)
