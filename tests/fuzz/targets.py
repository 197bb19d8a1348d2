"""All targets, by their names."""

from __future__ import annotations

from tests.fuzz.bundle_targets import bundle_targets
from tests.fuzz.command_targets import command_targets
from tests.fuzz.index_targets import index_targets
from tests.fuzz.metadata_targets import metadata_targets
from tests.fuzz.table_targets import table_targets
from tests.fuzz.target import Target

__all__ = ["TARGETS"]

_EVERY = (
    *index_targets(),
    *table_targets(),
    *bundle_targets(),
    *metadata_targets(),
    *command_targets(),
)
TARGETS: dict[str, Target] = {target.name: target for target in _EVERY}
