"""Whole Paimon tables: alcid beside Paimon's Java, pypaimon, pypaimon-rust and plain engines."""

from __future__ import annotations
