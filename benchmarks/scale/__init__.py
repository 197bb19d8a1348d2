"""Tables of very many files: how long it takes to open and to plan, and what memory."""

from __future__ import annotations
