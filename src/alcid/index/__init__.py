"""Which rows may match: the indexes of one data file, and bundles with those of many."""

from __future__ import annotations
