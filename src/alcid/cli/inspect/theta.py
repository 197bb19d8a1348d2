"""What a theta sketch tells, by itself or as a blob in Puffin."""

from __future__ import annotations

from alcid.byte_map.kinds import Kind
from alcid.cli.inspect.listing import Facts, Listing
from alcid.formats.source import Source
from alcid.formats.theta.sketch import ThetaSketch

__all__ = ["inspect_theta", "theta_facts"]


def inspect_theta(source: Source, limit: int | None) -> Listing:  # noqa: ARG001  # lists nothing
    """A compact sketch in a file of its own."""
    sketch = ThetaSketch.from_bytes(source.read(0, source.size), name=source.name)
    return Listing(source.name, Kind.THETA_SKETCH, source.size, theta_facts(sketch))


def theta_facts(sketch: ThetaSketch) -> Facts:
    """The estimate, and what it is made of."""
    return {
        "estimate": sketch.estimate,
        "ndv": sketch.ndv,
        "theta": sketch.theta,
        "hashes": len(sketch),
    }
