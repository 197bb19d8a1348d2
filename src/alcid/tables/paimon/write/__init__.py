"""Changes of Paimon tables without a primary key, and their indexes."""

from __future__ import annotations
