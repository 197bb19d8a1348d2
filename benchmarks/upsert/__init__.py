"""Tables with a primary key: loads, upserts, look-ups and compactions, alcid beside others."""

from __future__ import annotations
