"""Make the golden bundles of the current version.

    python -m tests.golden.make_bundles

Bundles of a released version are never made again: they show that they stay readable. So the
script refuses to write into an existing folder.
"""

from __future__ import annotations

from pathlib import Path

from alcid.formats.source import BytesSource
from alcid.index.bundle import Bundle
from alcid.index.bundle.format import VERSION
from tests.golden.bundle_cases import cases, described
from tests.golden.values import save

FOLDER = Path(__file__).resolve().parent / "bundles" / VERSION


def main() -> None:
    FOLDER.mkdir(parents=True)
    for name, data in cases().items():
        facts = {"kind": "bundle", "version": VERSION}
        save(FOLDER, name, facts | described(Bundle.open(BytesSource(data))), data)
        print(f"{FOLDER.name}/{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
