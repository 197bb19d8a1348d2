"""Plain data as HTML and SVG that stands alone."""

from __future__ import annotations
