"""Theta sketches: how many distinct values a column has, as Iceberg's statistics store it."""

from __future__ import annotations

from alcid.formats.theta.sketch import ThetaSketch

__all__ = ["ThetaSketch"]
