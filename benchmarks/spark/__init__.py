"""The pipeline on Spark: questions, builds and appends, beside plain Spark on the same rows."""

from __future__ import annotations
