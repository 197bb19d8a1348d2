"""Verify, repair and clean: findings, one runner, and fixers for each kind of table."""

from __future__ import annotations
