from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.samples import Alcid, runner, write_sample


@pytest.fixture
def alcid(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Alcid:
    for name in (
        "FORCE_COLOR",
        "TTY_COMPATIBLE",
    ):  # they would make a terminal of the captured text
        monkeypatch.delenv(name, raising=False)
    return runner(capsys)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path)
