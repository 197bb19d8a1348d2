"""Any text at all gives a tree that its own text gives again, or a PredicateError."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alcid.errors import PredicateError
from alcid.expressions import And, Comparison, parse

_FRAGMENTS = re.findall(
    r"\S+",
    r"""
    a b `a` `a``'f0f'` x r n é 名 ² ٣ _c a.b m['k'] m["k"] m[0] 1a upper f isnan( startswith(
    = == <> != < <= > >= <=> + - * / % || & | ^ ! ( ) [ ] , ; . : :: ? -> $ @ { } # \
    0 1 -5 1.5 .5 1. 1e 1e3 1e+ 1e-3 1E 1_0 1.2.3 1L 1e5L 300Y 1D 1.5BD 1e400D 1e999999
    9223372036854775808 0x 0x1 0x1F 0X0 0b1 DECIMAL(999999999,2) DECIMAL(x,y)
    '' 'a' "a" 'it''s' 'it\'s' "q""q" '%' '1' 'f0f' x'0A' X"0a" x'0G' r'\' R"\" n'a' b'1'
    ' " ` /* */ /**/ -- /*'*/ :x ${x} {{x}} {x} @x
    AND OR NOT IN BETWEEN LIKE ILIKE RLIKE ESCAPE IS NULL TRUE FALSE DISTINCT FROM CASE WHEN THEN
    ELSE END CAST TRY_CAST AS INT STRING DOUBLE DATE TIMESTAMP INTERVAL DAY SELECT EXISTS ANY OVER
    """,
)
_WORDS = st.sampled_from([*_FRAGMENTS, "\n", "x '1'", "'\ue0000.0'"])
_SOUP = st.builds(
    str.join, st.sampled_from([" ", ""]), st.lists(_WORDS | st.text(max_size=3), max_size=12)
)
_OPERANDS = st.lists(_WORDS, min_size=1, max_size=3).map(" ".join)
_OPERATORS = st.sampled_from(["=", "<", "IN", "LIKE", "BETWEEN 1 AND"])
_NEAR_PREDICATES = st.lists(
    st.builds("{} {} {}".format, _OPERANDS, _OPERATORS, _OPERANDS), min_size=1, max_size=3
).map(" AND ".join)


@given(text=st.one_of(_SOUP, _NEAR_PREDICATES, st.text()))
@example(text="id = 0x1")
@example(text="id = 1e")
@example(text="s = 'a' AND bin = 0x101")
def test_any_text_is_a_predicate_error_or_a_tree_that_its_text_gives_again(text: str) -> None:
    try:
        tree = parse(text)
    except PredicateError:
        return
    written = str(tree)
    if "INTERVAL" not in written.upper():  # sqlglot writes some of these differently
        assert parse(written) == tree


_STRINGS = {
    "'a'": "a",
    '"a"': "a",
    "'f0f'": "f0f",
    "'0x1'": "0x1",
    "'-- \\' /*'": "-- ' /*",
    "'\ue0000.0'": "\ue0000.0",
    r"r'\'": "\\",
    "x'01'": b"\x01",
    'X "f0f"': b"\x0f\x0f",
    "5": 5,
}
_SPACES = st.sampled_from([" ", "\n", "/* ' */", "-- 0x1 '\n", "/* x'00' */ "])


@given(
    literals=st.lists(st.sampled_from(sorted(_STRINGS)), min_size=1, max_size=6),
    space=_SPACES,
    hexadecimal=st.integers(min_value=0).map(hex) | st.just(""),
)
def test_strings_bytes_and_comments_never_take_the_place_of_one_another(
    literals: list[str], space: str, hexadecimal: str
) -> None:
    text = f"{space}AND{space}".join(f"c ={space}{literal}" for literal in literals)
    expected = And.of(Comparison("c", "=", _STRINGS[literal]) for literal in literals)
    assert parse(text) == expected
    if hexadecimal:
        with pytest.raises(PredicateError, match=f"{hexadecimal} is no number"):
            parse(f"{text}{space}AND c = {hexadecimal}")
