"""The events of the demo: answers of pupils, which Spark generates from row numbers alone.

| column     | values                                                                            |
|------------|-----------------------------------------------------------------------------------|
| `id`       | unique, in no order                                                               |
| `user_id`  | one of `rows / 20`, anywhere                                                      |
| `class_id` | one of 200; a hundred events in a row are of the same class                       |
| `score`    | 0 to 100 in hundredths, most around 50; one in 20,000 has all the points          |
| `url`      | one of 20,000                                                                     |
| `answer`   | 32 characters that no query uses, as the rest of a row                            |
| `dt`       | one of ten days, `20250801` to `20250810`; four files each                        |

No column but `dt` is sorted, so that the min/max values of a file rule out nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DAY", "INDEXES", "expected_users", "make_events", "make_users", "some_id"]

DAY = "20250801"
INDEXES = {
    "file-index.bloom-filter.columns": "id,user_id",
    "file-index.bitmap.columns": "class_id",
    "file-index.range-bitmap.columns": "score",
}

_DAYS, _FILES_OF_DAY = 10, 4
_FACTOR, _MODULUS = 2654435761, 1 << 40  # an odd number: each row gets an id of its own


def make_events(spark: Any, rows: int) -> Any:
    """The events, as a Spark DataFrame with a partition for each file."""
    days = max(-(-rows // _DAYS), 1)
    return spark.range(0, rows, 1, _DAYS * _FILES_OF_DAY).selectExpr(
        f"(id * {_FACTOR}) % {_MODULUS} AS id",
        f"pmod(xxhash64(id, 1), {max(rows // 20, 1)}) AS user_id",
        "CAST((id div 100 * 73 + 1) % 200 AS INT) AS class_id",
        "IF(id % 20000 = 1234, 100D,"
        " (pmod(xxhash64(id, 2), 5000) + pmod(xxhash64(id, 3), 5000)) / 100D) AS score",
        "concat('https://school.example/lesson/', pmod(xxhash64(id, 4), 20000)) AS url",
        "md5(CAST(id AS STRING)) AS answer",
        f"CAST(20250801 + id div {days} AS STRING) AS dt",
    )


def some_id(rows: int) -> int:
    """The id of a row in the middle."""
    return rows // 2 * _FACTOR % _MODULUS


def make_users(spark: Any, users: int) -> tuple[Any, Any]:
    """Initial users, and changes: to a twentieth of them, and as many new users.

    Every tenth change deletes its user.
    """
    first = spark.range(users).selectExpr(
        "id AS user_id", "concat('user ', id) AS name", "CAST(0 AS INT) AS version"
    )
    changes = spark.range(users - users // 20, users + users // 20).selectExpr(
        "id AS user_id",
        "concat('user ', id) AS name",
        "CAST(1 AS INT) AS version",
        "IF(id % 10 = 0, '-D', '+U') AS op",
    )
    return first, changes


def expected_users(spark: Any, users: int) -> Any:
    """The users after the changes, worked out without a table."""
    changed = users - users // 20
    return (
        spark.range(users + users // 20)
        .where(f"NOT (id >= {changed} AND id % 10 = 0)")
        .selectExpr(
            "id AS user_id",
            "concat('user ', id) AS name",
            f"CAST(id >= {changed} AS INT) AS version",
        )
    )
