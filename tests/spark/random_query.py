"""Random queries over the tables `t` and `u` of `sql_tables`."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["RandomQuery"]

LITERALS: dict[str, list[str]] = {
    "id": ["3", "17", "40", "99", "150", "12.5"],
    "k": ["0", "2", "3", "6", "2.5", "NULL", "9"],
    "tiny": ["-100", "0", "50", "1000"],
    "small": ["37", "1000", "-1"],
    "f": ["0.0", "float(0.1)", "0.1", "float('NaN')", "60", "float('-Infinity')"],
    "g": ["-0.0D", "0.1D", "double('NaN')", "60", "-2.5", "double('Infinity')"],
    "amount": ["1.25", "0", "10", "-1.255", "1E3"],
    "huge": ["100000000000000000000.0000000001", "5E21BD", "0"],
    "s": ["''", "'a'", "'ab'", "'ß'", "'b%'", "NULL", "'zz'"],
    "b": ["X'0500FA'", "X'50'", "X''"],
    "flag": ["true", "false", "NULL"],
    "d": ["DATE '2025-08-10'", "'2025-09-05'", "TIMESTAMP '2025-08-20 12:00:00'"],
    "ts": ["TIMESTAMP '2025-11-02 01:30:00'", "'2025-11-02T06:10:00Z'", "DATE '2025-11-02'"],
    "wall": ["TIMESTAMP_NTZ '2025-11-02 05:30:00'", "'2025-11-02 04:20:00'"],
    "dt": ["'20250801'", "20250802", "NULL"],
}
UNKNOWN = [
    "upper({0}.s) = 'AB'",
    "{0}.id % 3 = 1",
    "coalesce({0}.k, 4) = 4",
    "length({0}.s) > 1",
    "{0}.tiny < {0}.small",
    "{0}.inner.x = 2",
    "size({0}.tags) = 2",
    "cast({0}.k AS string) = '3'",
]
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


class RandomQuery:
    """Makes one query after the other."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self) -> tuple[str, bool]:
        """A query, and whether its rows are ordered."""
        shapes: list[Callable[[], str]] = [
            self._select,
            self._join,
            self._join,
            self._cte,
            self._union,
            self._group,
            self._subquery,
        ]
        if self.rng.random() < 0.2:
            return self._top(), True
        return self.rng.choice(shapes)(), False

    def _leaf(self, alias: str) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return rng.choice(UNKNOWN).format(alias)
        column = rng.choice(list(LITERALS))
        name, literals = f"{alias}.{column}", LITERALS[column]
        match rng.randrange(6):
            case 0:
                return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
            case 1:
                listed = ", ".join(rng.choices(literals, k=rng.choice([1, 2, 14])))
                return f"{name} {rng.choice(['', 'NOT '])}IN ({listed})"
            case 2 if column == "s":
                pattern = rng.choice(["a%", "%b", "%b%", "a_c", "b\\\\%", "", "%"])
                return f"{name} {rng.choice(['', 'NOT '])}LIKE '{pattern}'"
            case 3:
                return f"{name} BETWEEN {rng.choice(literals)} AND {rng.choice(literals)}"
        operator = rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        return f"{name} {operator} {rng.choice(literals)}"

    def condition(self, alias: str, depth: int = 2) -> str:
        """A condition on the rows of a table."""
        rng = self.rng
        if not depth or rng.random() < 0.4:
            return self._leaf(alias)
        legs = [self.condition(alias, depth - 1) for _ in range(rng.randint(2, 3))]
        joined = f" {rng.choice(['AND', 'OR'])} ".join(f"({leg})" for leg in legs)
        return f"NOT ({joined})" if rng.random() < 0.2 else joined

    def _columns(self, alias: str) -> str:
        if self.rng.random() < 0.3:
            return f"{alias}.*"
        chosen = self.rng.sample(list(LITERALS), self.rng.randint(1, 4))
        return ", ".join(f"{alias}.{name}" for name in chosen)

    def _select(self) -> str:
        return f"SELECT {self._columns('t')} FROM t WHERE {self.condition('t')}"

    def _join(self) -> str:
        rng = self.rng
        other, join = rng.choice(["t", "u"]), rng.choice(JOINS)
        on = f"a.{(key := rng.choice(['id', 'k', 's', 'd']))} = b.{key}"
        for alias in "ab":
            on += f" AND ({self.condition(alias, 1)})" if rng.random() < 0.4 else ""
        half = join in JOINS[4:]
        columns = "a.id, a.k, a.s" if half else "a.id, b.id, a.s, b.g"
        wheres = [self.condition(alias) for alias in ("a" if half else "ab") if rng.random() < 0.7]
        where = f" WHERE {' AND '.join(f'({where})' for where in wheres)}" if wheres else ""
        return f"SELECT {columns} FROM t a {join} {other} b ON {on}{where}"

    def _cte(self) -> str:
        legs = " UNION ALL ".join(
            f"SELECT id, s FROM x WHERE {self.condition('x', 1)}" for _ in range(2)
        )
        return f"WITH x AS (SELECT * FROM t WHERE {self.condition('t', 1)}) {legs}"

    def _union(self) -> str:
        word = self.rng.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        first = f"SELECT k, s, flag FROM t WHERE {self.condition('t')}"
        return f"{first} {word} SELECT k, s, flag FROM u WHERE {self.condition('u')}"

    def _group(self) -> str:
        having = self.rng.choice(["", " HAVING k > 2", " HAVING count(*) > 3 AND k IS NOT NULL"])
        where = self.condition("t")
        return f"SELECT k, count(*), max(id), min(s) FROM t WHERE {where} GROUP BY k{having}"

    def _subquery(self) -> str:
        rng = self.rng
        inner = self.condition("u", 1)
        tests = [
            f"t.k IN (SELECT u.k FROM u WHERE {inner})",
            f"t.k NOT IN (SELECT u.k FROM u WHERE {inner})",
            f"EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND ({inner}))",
            f"NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND ({inner}))",
            f"t.id > (SELECT avg(u.id) FROM u WHERE {inner})",
            f"t.id = (SELECT max(u.id) FROM u WHERE u.k = t.k AND ({inner}))",
        ]
        word = rng.choice(["AND", "OR"])
        return (
            f"SELECT t.id, t.s FROM t WHERE ({self.condition('t', 1)}) {word} {rng.choice(tests)}"
        )

    def _top(self) -> str:
        rng = self.rng
        keys = rng.sample([name for name in LITERALS if name != "id"], rng.randint(0, 2))
        ways = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        order = ", ".join(f"{name}{rng.choice(ways)}" for name in [*keys, "id"])
        where = f" WHERE {self.condition('t', 1)}" if rng.random() < 0.6 else ""
        return f"SELECT id, g, s FROM t{where} ORDER BY {order} LIMIT {rng.choice([1, 5, 30])}"
