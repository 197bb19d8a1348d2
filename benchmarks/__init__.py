"""Measurements: what an index costs to build and keep, and what it answers how fast."""

from __future__ import annotations
