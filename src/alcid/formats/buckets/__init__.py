"""Paimon's dynamic buckets: which channel a key goes to, and there which bucket."""

from __future__ import annotations

from alcid.formats.buckets.assigner import BucketAssigner
from alcid.formats.buckets.routing import (
    BucketOptions,
    Routing,
    assigner_of,
    fixed_bucket,
)

__all__ = ["BucketAssigner", "BucketOptions", "Routing", "assigner_of", "fixed_bucket"]
