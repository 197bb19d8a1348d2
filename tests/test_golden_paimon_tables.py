"""The Paimon tables in the folder ALCID_GOLDEN: their READMEs list the messages that made them.

Nothing here runs without that folder; the project's own tables are those of
`tests/tables/paimon/test_golden_tables.py`.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.types import DataType

FOLDER = Path(os.environ["ALCID_GOLDEN"]) / "paimon-tables"
READMES = sorted(FOLDER.glob("*/*/README"))

_MESSAGE = re.compile(r"(Add|DELETE|UPDATE_BEFORE|UPDATE_AFTER)\s*:\s*(.*)", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"|([^,\s][^,]*)')
_STEP = re.compile(r"(?:Commit|Compact)\b.*snapshot[- ]?(\d+)", re.IGNORECASE)


def values(text: str, types: list[DataType]) -> tuple[Any, ...]:
    fields = [quoted or plain.strip() for quoted, plain in _QUOTED.findall(text)]
    assert len(fields) == len(types), text
    return tuple(map(value, fields, types))


def value(text: str, data_type: DataType) -> Any:
    if text == "null":
        return None
    if data_type.root in ("INT", "BIGINT", "SMALLINT", "TINYINT", "TIMESTAMP"):
        return int(text)
    return float(text) if data_type.root in ("FLOAT", "DOUBLE") else text


def stories(readme: Path, table: PaimonTable) -> dict[int, set[tuple[Any, ...]]]:
    """The rows at each snapshot that the README names; 0: at the end, as a batch read sees it."""
    schema = table.snapshot.schema
    types = [field.data_type for field in schema.fields]
    key = [schema.names.index(name) for name in schema.primary_keys]
    live: dict[Any, tuple[Any, ...]] = {}
    seen: dict[int, set[tuple[Any, ...]]] = {0: set()}
    for line in readme.read_text().splitlines():
        if message := _MESSAGE.match(line.strip()):
            row = values(message[2], types)
            name = tuple(row[number] for number in key) if key else (len(live),)
            live.pop(name, None)
            if message[1].lower() in ("add", "update_after"):
                live[name] = row
        elif (step := _STEP.match(line.strip())) and (
            not table.snapshot.options.deletion_vectors or line.strip().startswith("Compact")
        ):
            seen[int(step[1])] = seen[0] = set(live.values())
    if not key:
        seen[0] = set(live.values())
    return seen


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [
        column.cast(pa.int64()).to_pylist()
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("readme", READMES, ids=[path.parent.name for path in READMES])
def test_a_table_is_read_as_its_messages_say(readme: Path) -> None:
    table = alcid.paimon(readme.parent)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        for number, expected in stories(readme, table).items():
            past = alcid.paimon(readme.parent, snapshot_id=number or None)
            table_rows = rows(past.scan().to_arrow())
            assert len(table_rows) == len(set(table_rows)) == len(expected)
            assert set(table_rows) == expected


@pytest.mark.parametrize("readme", READMES, ids=[path.parent.name for path in READMES])
def test_indexes_change_no_answer(readme: Path) -> None:
    table = alcid.paimon(readme.parent)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        for column in table.schema.names[:3]:
            for row_value in set(table.scan(columns=[column]).to_arrow().column(0).to_pylist()):
                where = (
                    alcid.col(column).is_null()
                    if row_value is None
                    else alcid.col(column) == row_value
                )
                answers = [table.scan(where, use_indexes=use).to_arrow() for use in (True, False)]
                assert rows(answers[0]) == rows(answers[1])
