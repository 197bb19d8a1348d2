"""SQL text to a tree, as Spark reads it."""

from __future__ import annotations

import datetime
import math
import time
from decimal import Decimal

import numpy as np
import pytest

from alcid.errors import PredicateError
from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    SessionTimestamp,
    Unknown,
    parse,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", Comparison("a", "=", 1)),
        ("a == 1", Comparison("a", "=", 1)),
        ("a <> 1", Comparison("a", "<>", 1)),
        ("a != 1", Comparison("a", "<>", 1)),
        ("a <=> 1", Comparison("a", "<=>", 1)),
        ("5 < a", Comparison("a", ">", 5)),
        ("5 >= a", Comparison("a", "<=", 5)),
        ("5 = a", Comparison("a", "=", 5)),
        ("(a) = (5)", Comparison("a", "=", 5)),
        ("a IN (1, NULL)", In("a", (1, None))),
        ("a NOT IN (1)", Not(In("a", (1,)))),
        ("a BETWEEN 1 AND 2 AND b = 3", And((Between("a", 1, 2), Comparison("b", "=", 3)))),
        ("a IS NULL", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("a IS DISTINCT FROM 1", Not(Comparison("a", "<=>", 1))),
        ("a IS NOT DISTINCT FROM NULL", Comparison("a", "<=>", None)),
        ("flag", Comparison("flag", "=", True)),
        ("NOT flag", Not(Comparison("flag", "=", True))),
        ("! flag", Not(Comparison("flag", "=", True))),
        ("flag IS TRUE", Comparison("flag", "<=>", True)),
        ("flag IS NOT FALSE", Not(Comparison("flag", "<=>", False))),
        ("TRUE", Constant(True)),
        ("NULL", Constant(None)),
        ("isnan(a)", Comparison("a", "<=>", math.nan)),
        ("startswith(a, '5%')", Like("a", "5%", prefix=True)),
        ("`a b` = 1", Comparison("a b", "=", 1)),
        ("`a``b` = 1", Comparison("a`b", "=", 1)),
        ("`a.b` = 1", Comparison("a.b", "=", 1)),
        ("a.b = 1", Unknown("a.b = 1", ("a",))),
        ("a.b.c.d.e = 1", Unknown("a.b.c.d.e = 1", ("a",))),
        ("m['key'] = 1", Comparison("m[key]", "=", 1)),
        ("a = 1; ", Comparison("a", "=", 1)),
        ("a = 1 -- and b = 2", Comparison("a", "=", 1)),
        ("a = 1 /* or 'b */", Comparison("a", "=", 1)),
        ("a = 1 OR b = 2 AND NOT c", Or((parse("a = 1"), And((parse("b = 2"), Not(parse("c"))))))),
    ],
)
def test_expression(text: str, expected: Predicate) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("- -5", 5),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("5.5", Decimal("5.5")),
        (".5", Decimal("0.5")),
        ("1e3", 1000.0),
        ("5L", 5),
        ("5S", 5),
        ("-5Y", -5),
        ("1.1F", float(np.float32(1.1))),
        ("1.5D", 1.5),
        ("1.5BD", Decimal("1.5")),
        ("1e3BD", Decimal(1000)),
        ("X'1F'", b"\x1f"),
        ("X'F'", b"\x0f"),
        ("true", True),
        ("NULL", None),
        ("DATE '2020-1-2'", datetime.date(2020, 1, 2)),
        ("date'12345-01-02'", np.datetime64("12345-01-02")),
        ("TIMESTAMP '2020-01-02 03:04:05'", SessionTimestamp("2020-01-02 03:04:05")),
        ("TIMESTAMP_LTZ '2020-01-02 03:04:05'", SessionTimestamp("2020-01-02 03:04:05")),
        (
            "TIMESTAMP '2020-01-02 03:04:05+01:00'",
            datetime.datetime(2020, 1, 2, 2, 4, 5, tzinfo=datetime.UTC),
        ),
        (
            "TIMESTAMP_NTZ '2020-01-02 03:04:05.1234567'",
            datetime.datetime(2020, 1, 2, 3, 4, 5, 123456),
        ),
        ("TIME '10:11:12.5'", datetime.time(10, 11, 12, 500000)),
        ("CAST('2020-01-02' AS DATE)", datetime.date(2020, 1, 2)),
        ("CAST('NaN' AS DOUBLE)", math.nan),
        ("CAST('5' AS INT)", 5),
        ("CAST(5 AS DECIMAL(3, 1))", Decimal(5)),
        ("CAST('x' AS STRING)", "x"),
        ("CAST(NULL AS INT)", None),
        ("'a' 'b'", "ab"),
    ],
)
def test_literal(text: str, literal: object) -> None:
    parsed = parse(f"a = {text}")
    assert parsed == Comparison("a", "=", literal)
    assert isinstance(parsed, Comparison)
    assert type(parsed.literal) is type(literal)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        (r"'it\'s'", "it's"),
        ("'it''s'", "it's"),
        ('"d""q"', 'd"q'),
        (r"'\n\t\r\b\0\Z\\'", "\n\t\r\b\0\x1a\\"),
        (r"'\%\_'", r"\%\_"),
        (r"'\x\q'", "xq"),
        (r"'\u0041\U0001F600'", "A\U0001f600"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        (r"'\u00'", "u00"),
        (r"'\101\012'", "A\n"),
        (r"'\377'", "377"),
        (r"'\08'", "\x008"),
        (r"R'\n'", r"\n"),
        (r"""r"a\'b" """, r"a\'b"),
        ("'-- no comment'", "-- no comment"),
        ("'f0f'", "f0f"),
    ],
)
def test_string_literals_as_spark_unescapes_them(text: str, literal: str) -> None:
    assert parse(f"a = {text}") == Comparison("a", "=", literal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a LIKE 'abc%'", Like("a", "abc", prefix=True)),
        ("a LIKE 'abc%%'", Like("a", "abc", prefix=True)),
        ("a LIKE 'abc'", Like("a", "abc", prefix=False)),
        ("a LIKE '%'", Like("a", "", prefix=True)),
        ("a NOT LIKE 'abc%'", Not(Like("a", "abc", prefix=True))),
        (r"a LIKE '50\%'", Like("a", "50%", prefix=False)),
        (r"a LIKE 'a\\\\b%'", Like("a", "a\\b", prefix=True)),
        ("a LIKE '50/%%' ESCAPE '/'", Like("a", "50%", prefix=True)),
        (r"a LIKE 'a\\%' ESCAPE '/'", Like("a", "a\\", prefix=True)),
    ],
)
def test_like_of_a_prefix_or_without_wildcards(text: str, expected: Predicate) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a LIKE '%x'",
        "a LIKE 'x_'",
        "a LIKE 'a%b'",
        "a LIKE 'a/b' ESCAPE '/'",
        "a LIKE 'a/' ESCAPE '/'",
        "a LIKE b",
        "a LIKE ANY ('x%', 'y')",
        "a ILIKE 'x%'",
        "a RLIKE 'x'",
        "upper(a) = 'X'",
        "isnan(upper(a))",
        "CAST(a AS INT) = 5",
        "a + 1 = 5",
        "-a = 5",
        "a = b",
        "a IN (1, b)",
        "a IN (SELECT 1)",
        "a BETWEEN b AND 2",
        "a[0] = 1",
        "m['x']['y'] = 1",
        "(a, b) IN ((1, 2))",
        "a = CAST(5.5 AS INT)",
        "a = 300Y",
        "a = CAST('x' AS DATE)",
        "a = DATE 'today'",
        "a = TIMESTAMP '10:11:12'",
        "a = INTERVAL '1' DAY",
        "a = current_date()",
        "(a = 1) IS NULL",
        "1 < a < 3",
        "1 = 1",
        "CASE WHEN a THEN b END",
        "get_json_object(a, '$.x') = 'y'",
    ],
)
def test_what_no_index_can_answer_is_unknown(text: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Unknown)
    assert set(parsed.names) <= {"a", "b", "m"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no text, expected one boolean expression"),
        ("-- only a comment", "no text, expected one boolean expression"),
        ("a = 1; b = 2", "2 statements, expected one boolean expression"),
        ("SELECT 1", "cannot read the text near SELECT"),
        ("(SELECT 1)", "a value or a query, expected a boolean expression"),
        ("DROP TABLE t", "cannot read the text near DROP"),
        ("a = 1 LIMIT 5", "cannot read the text near LIMIT"),
        ("a = 1 AS b", "cannot read the text near AS"),
        ("a =", "cannot read the text near =: expected a value"),
        ("a BETWEEN 1", "cannot read the text near 1: expected AND and a value"),
        ("CAST(a AS", "cannot read the text near AS: expected TYPE after CAST"),
        ("a 'it' b", "cannot read the text near 'it'"),
        ("a 'two\nlines' b", "cannot read the text near 'two lines'"),
        ("(a = 1", "cannot read the text near 1: expected )"),
        ("a, b", "cannot read the text near ,"),
        ("5", "a value or a query, expected a boolean expression"),
        ("'x'", "a value or a query, expected a boolean expression"),
        ("a = 'x", "a quote or a comment is not closed"),
        ("`a = 1", "a quote or a comment is not closed"),
        ("a = 1 /* b", "a quote or a comment is not closed"),
        ("a = 1 /* /* */ AND b = 2 -- */", "a comment within a comment"),
        ("a = DATE '2020-13-01'", "DATE does not take '2020-13-01'"),
        ("a = X'1G'", "X'..' takes hexadecimal digits"),
        ("a = X'1 2'", "X'..' takes hexadecimal digits"),
        ("a = N'x'", "Spark has no N'..' strings"),
        ("a IN (1,,2)", "expected a value within ,,"),
        ("a IN (1, /* two */ , 2)", "expected a value within , ,"),
        ("a IN (, 1)", "expected a value within (,"),
        ("f(a,)", "expected a value within ,)"),
        ("* < 5", "cannot read the text near *"),
        (";END", "a value or a query, expected a boolean expression"),
        ("(" * 2000 + "a" + ")" * 2000, "it is nested too deeply"),
    ],
)
def test_text_that_is_no_predicate_is_one_clear_line(text: str, problem: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    assert str(caught.value) == f"not a predicate: {problem}"


@pytest.mark.parametrize(
    "word",
    [
        "0x1",
        "0x1F",
        "0X0",
        "0x",
        "0b1",
        "1e",
        "1E",
        "1.5e",
        "1_000",
        "1e5L",
        "1.2.3",
        "1..2",
        "1.x",
    ],
)
def test_text_that_is_almost_a_number_is_refused_everywhere(word: str) -> None:
    for text in (f"a = {word}", f"s = 'a' AND upper(b) = {word}", f"a IN ('x', {word})"):
        with pytest.raises(PredicateError) as caught:
            parse(text)
        expected = f"{word} is no number; the name of a column takes backticks"
        assert str(caught.value) == f"not a predicate: {expected}"


@pytest.mark.parametrize("text", ["a = 1 .5", ". 1.5 = a", ". 1.5BD = a", "1ef = a"])
def test_parts_that_sqlglot_would_join_to_a_number_are_refused(text: str) -> None:
    with pytest.raises(PredicateError, match=r"^not a predicate: cannot read the text"):
        parse(text)


@pytest.mark.parametrize("name", ["1a", "1e5x", "2020_sales"])
def test_name_may_begin_with_a_digit(name: str) -> None:
    assert parse(f"{name} = 5") == Comparison(name, "=", 5)


@pytest.mark.parametrize(
    "placeholder",
    [":x", "?", "${x}", "$x", "{{x}}", "{{ x }}", "{x}", "@x", "@@x", "{{ f('a') }}", "${"],
)
def test_placeholder_that_was_not_filled_in_is_named(placeholder: str) -> None:
    for text in (f"a = {placeholder}", f"a IN (1, {placeholder})", f"f({placeholder}) = 1"):
        with pytest.raises(PredicateError) as caught:
            parse(text)
        assert str(caught.value).startswith(f"not a predicate: the placeholder {placeholder}")


@pytest.mark.parametrize("text", [":x", "?", "${x}", "{{x}}", "@x", "1e", "0x1", "1,,2", "N'"])
def test_what_is_refused_in_sql_is_plain_within_strings_names_and_comments(text: str) -> None:
    name = f"`{text}`"
    assert parse(f"{name} = 5 /* {text} */") == Comparison(text, "=", 5)
    assert parse(f'a = "{text}" -- {text}') == Comparison("a", "=", text)


def test_double_colon_is_a_cast_and_no_placeholder() -> None:
    assert parse("a::int = 1") == Unknown("CAST(a AS INT) = 1", ("a",))


@pytest.mark.parametrize(
    ("text", "literal"),
    [('x"0a"', b"\n"), ("X '0A'", b"\n"), ("X''", b""), ("x'f0f'", b"\x0f\x0f")],
)
def test_bytes_in_every_spelling_of_spark(text: str, literal: bytes) -> None:
    assert parse(f"s = 'f0f' AND a = {text}") == And(
        (Comparison("s", "=", "f0f"), Comparison("a", "=", literal))
    )


def test_mark_of_a_string_is_none_that_the_text_contains() -> None:
    name = "'\ue0000.0'"
    parsed = parse(f"`{name}` = upper('a') AND s = '\ue0001.0' AND t = INTERVAL '\ue0002.0'")
    assert parsed == And(
        (
            Unknown(f"`{name}` = upper('a')", (name,)),
            Comparison("s", "=", "\ue0001.0"),
            Unknown("t = INTERVAL '\ue0002.0'", ("t",)),
        )
    )


def test_precision_that_no_decimal_has_costs_nothing_and_is_unknown() -> None:
    for target in ("DECIMAL(999999999, 2)", "DECIMAL(5, 999999999)", f"DECIMAL({'9' * 5000}, 2)"):
        assert isinstance(parse(f"a = CAST(5 AS {target})"), Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "1" * 100_000 + "x = 3 AND",
        "a = " + "1" * 100_000 + "..",
        "a = '" + "\\'" * 50_000,
        "/*" * 50_000,
        "1e+" * 30_000,
        "{" * 100_000,
        "`" * 99_999,
        "a IN (" + "," + " " * 100_000,
    ],
)
def test_long_text_that_is_no_predicate_is_refused_in_linear_time(text: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(PredicateError):
        parse(text)
    assert time.perf_counter() - begin < 5


def test_double_beyond_every_double_is_unknown() -> None:
    assert isinstance(parse(f"a = 1{'0' * 400}D"), Unknown)


def test_what_is_neither_text_nor_predicate_is_refused() -> None:
    number: object = 5
    with pytest.raises(PredicateError, match="text or a Predicate, not int"):
        parse(number)  # type: ignore[arg-type]


def test_predicate_is_given_back_as_it_is() -> None:
    predicate = parse("a = 1")
    assert parse(predicate) is predicate


def test_thousands_of_ors_make_one_flat_node() -> None:
    predicate = parse(" OR ".join(f"(a = {number} AND b = 1)" for number in range(3000)))
    assert isinstance(predicate, Or)
    assert len(predicate.parts) == 3000
    assert predicate.parts[-1] == parse("a = 2999 AND b = 1")
