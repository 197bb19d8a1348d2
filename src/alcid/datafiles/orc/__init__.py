"""Stripes of ORC files, whole: Paimon tables may have such data files.

- `open_orc_scans`, `OrcScan`: what `alcid.datafiles.parquet` has as `open_scans` and `ParquetScan`.

Timestamps are those that Java reads in the time zone in which it wrote them, and a map with a null
key is refused, on which Arrow would end the process.

There are no rows by position, as ORC has no pages, and its statistics are not used to leave out
stripes. Nor are there checksums: footers are checked here before Arrow sees them, but Arrow trusts
the data. Where it is damaged there may be other values, no end, or the end of the process: do not
read ORC files of unknown origin where others work.
"""

from __future__ import annotations

from alcid.datafiles.orc.stripes import OrcScan, open_orc_scans

__all__ = ["OrcScan", "open_orc_scans"]
