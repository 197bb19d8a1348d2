"""The indexes that the questions are asked with."""

from __future__ import annotations

__all__ = ["index_options"]


def index_options(rows: int, *, light: bool = False) -> dict[str, str]:
    """Options as Paimon names them, for data files of so many rows.

    Args:
        rows: The bloom filters are sized for as many different values.
        light: Without the bitmaps of the two columns that have a value for almost every row.
    """
    bloom = "file-index.bloom-filter"
    sized = {
        f"{bloom}.{column}.{key}": value
        for column in ("id", "user_id")
        for key, value in (("items", str(rows)), ("fpp", "0.01"))
    }
    return {
        f"{bloom}.columns": "id,user_id",
        **sized,
        "file-index.bitmap.columns": "class_id" if light else "id,user_id,class_id",
        "file-index.range-bitmap.columns": "score",
    }
