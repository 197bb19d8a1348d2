"""The JVM of the driver, which Spark Connect does not show, is used in one package only."""

from __future__ import annotations

import re
from pathlib import Path

import alcid

SOURCE = Path(alcid.__file__).parent
OF_THE_JVM = re.compile(r"\b_jvm\b|\b_jdf\b|\b_jc\b|\b_jsparkSession\b|\bsparkContext\b|\bpy4j\b")


def test_the_jvm_is_used_in_one_package() -> None:
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if OF_THE_JVM.search(path.read_text("utf-8"))
    }
    assert users
    assert all(user.startswith("spark/jvm/") for user in users), users
