"""The indexes of Paimon tables, for tests that build them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alcid import PaimonTable
from alcid.formats.file_index.container import Container
from alcid.scan import planner
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.write.index_plan import indexable_files, read_containers
from tests.tables.paimon.small_tables import append

BITMAP = {"file-index.bitmap.columns": "name"}
BLOOM = {"file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.items": "50"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
EVERY = 1 << 40

Payloads = dict[tuple[str, str], bytes | None]


def filled(table: PaimonTable) -> PaimonTable:
    append(table, range(20))
    append(table, range(20, 50))
    return table


def entries(table: PaimonTable) -> tuple[ManifestEntry, ...]:
    return table.snapshot.state.entries


def payloads(table: PaimonTable) -> list[Payloads | str | None]:
    """The indexes of each data file; a text if its container is damaged."""
    contents: list[Payloads | str | None] = []
    for container in read_containers(table.storage, indexable_files(table.snapshot)[0]):
        if isinstance(container, Container):
            sections = {
                (entry.column, entry.index_type): None
                if entry.is_empty
                else container.section(entry)
                for entry in container.entries
            }
            contents.append(
                {
                    name: None if section is None else section.read(0, section.length)
                    for name, section in sections.items()
                }
            )
        else:
            contents.append(None if container is None else str(container))
    return contents


def readable(table: PaimonTable) -> list[Payloads]:
    return [payload for payload in payloads(table) if isinstance(payload, dict)]


def kinds(table: PaimonTable) -> list[Any]:
    return [
        sorted(payload) if isinstance(payload, dict) else payload for payload in payloads(table)
    ]


def sidecars(table: PaimonTable) -> list[str]:
    """What the names of index files add to those of their data files."""
    return [
        extra.removeprefix(entry.file.name)
        for entry in entries(table)
        for extra in entry.file.extra_files
    ]


def set_table_options(table: PaimonTable, options: Mapping[str, str]) -> None:
    """Set exactly these options of a table, as ALTER TABLE does."""
    before = table.folder.latest_schema()
    change_schema(table, replace(before, options=dict(options)))


def change_schema(table: PaimonTable, schema: TableSchema) -> None:
    after = replace(schema, id=table.folder.latest_schema().id + 1)
    table.storage.create(f"schema/schema-{after.id}", after.to_json())
    table.refresh()


def hides(table: PaimonTable, where: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids that match a predicate, with indexes asked whatever they cost."""
    with monkeypatch.context() as patch:
        ask_always(patch)
        ids: list[int] = table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(ids)


def ask_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "full_scan_bytes", lambda table, _: np.full(len(table.sizes), EVERY))
