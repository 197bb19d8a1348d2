"""The options of Paimon's released Java: none is unknown here, and the defaults agree."""

from __future__ import annotations

from typing import Any

import pytest

from alcid.errors import OptionError
from alcid.tables.paimon.metadata.option_keys import (
    ALIASES,
    HARMLESS,
    PAIMON_VERSION,
    REFUSALS,
    is_harmless,
)
from alcid.tables.paimon.metadata.options import (
    HONOURED,
    TableOptions,
    boolean,
    integer,
    is_known,
    parse_value,
    size,
)
from tests.golden.paimon_jvm import VERSION, PaimonJvm

OWNERS = (
    "CoreOptions",
    "format.OrcOptions",
    "globalindex.btree.BTreeIndexOptions",
    "iceberg.IcebergOptions",
)
# Options without a default, which Paimon derives from others.
WORKED_OUT = {"num-levels", "target-file-size"}


@pytest.fixture(scope="module")
def released(jvm: PaimonJvm) -> dict[str, Any]:
    """The options of the release: `ConfigOption` by key."""
    options: dict[str, Any] = {}
    for owner in OWNERS:
        kind = jvm.java.lang.Class.forName(f"org.apache.paimon.{owner}")
        for field in kind.getFields():
            if field.getType().getSimpleName() == "ConfigOption":
                option = field.get(None)
                options[option.key()] = option
    return options


def default_of(option: Any) -> str | None:
    value = option.defaultValue()
    return None if value is None else str(value).removesuffix("{}")


def test_the_keys_are_those_of_the_release_that_is_asked(released: dict[str, Any]) -> None:
    assert PAIMON_VERSION == VERSION
    assert len(released) == 310


def test_every_key_is_honoured_refused_or_listed_as_harmless(released: dict[str, Any]) -> None:
    assert [key for key in released if not is_known(key)] == []


def test_keys_of_the_writers_of_files_are_listed_too(released: dict[str, Any]) -> None:
    listed = {key for keys in HARMLESS.values() for key in keys.split()}
    by_form = {key for key in released if is_harmless(key) and key not in listed}
    assert by_form == {"orc.timestamp-ltz.legacy.type"}  # supported


def test_older_names_are_those_of_the_release(released: dict[str, Any]) -> None:
    older = {
        fallback.getKey(): key
        for key, option in released.items()
        for fallback in option.fallbackKeys()
        if fallback.getKey() not in released
    }
    assert older == ALIASES


def test_a_refused_option_may_have_its_default(released: dict[str, Any]) -> None:
    refused = {}
    for key, refusal in REFUSALS.items():
        value = default_of(released[key]) if key in released else None
        if value is not None and value.lower() not in refusal.allowed:
            refused[key] = value
    assert refused == {}


def test_defaults_are_those_of_the_release(released: dict[str, Any]) -> None:
    differing = {}
    for key, (attribute, parser) in HONOURED.items():
        if key not in released or key in WORKED_OUT:
            continue
        text = default_of(released[key])
        ours = getattr(TableOptions(), attribute)
        if ours != (parser(text) if text is not None else None) and (ours, text) != ((), None):
            differing[key] = (ours, text)
    assert differing == {}


def test_only_options_of_later_versions_are_honoured_beyond_the_release(
    released: dict[str, Any],
) -> None:
    assert HONOURED.keys() - released.keys() == {"deletion-vectors.merge-on-read"}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num-sorted-run.compaction-trigger": "3"},
        {"target-file-size": "1 mb"},
        {"merge-engine": "first-row"},
        {"deletion-vectors.enabled": "true"},
    ],
    ids=str,
)
def test_what_is_worked_out_is_as_in_the_release(
    jvm: PaimonJvm, options: dict[str, str], keyed: bool
) -> None:
    core = jvm.paimon.CoreOptions.fromMap(_java_map(jvm, options))
    ours = TableOptions.parse(options, has_primary_key=keyed)
    assert ours.num_levels == core.numLevels()
    assert ours.target_file_size == core.targetFileSize(keyed)
    assert ours.skips_level_0 == (keyed and core.batchScanSkipLevel0())


def _java_map(jvm: PaimonJvm, options: dict[str, str]) -> Any:
    made = jvm.java.util.HashMap()
    for key, value in options.items():
        made.put(key, value)
    return made


TEXTS = ["0", "5", " 5", "5 ", "+5", "-5", "5.0", "", " ", "x", "2147483648", "1b", "1 kb", "2 MB"]
TEXTS += ["3 gibibytes", "2MiB", "1.5mb", "5 pb", "9999999999999 tb", "10s", "1 h", "2 HOURS"]
TEXTS += ["3 m", "1 us", "8 µs", "7 micro", "PT1H", "1 w", "true", "TRUE", " true", "yes", "False"]


@pytest.mark.parametrize("kind", ["memory", "boolean", "int"])
def test_texts_are_read_or_refused_as_in_the_release(jvm: PaimonJvm, kind: str) -> None:
    from py4j.protocol import Py4JJavaError

    builder = jvm.paimon.options.ConfigOptions.key("x")
    option = getattr(builder, f"{kind}Type")().noDefaultValue()
    parser = {"memory": size, "boolean": boolean, "int": integer(-(2**31))}[kind]
    for text in TEXTS:
        try:
            answer = jvm.paimon.options.Options.fromMap(_java_map(jvm, {"x": text})).get(option)
        except Py4JJavaError:
            with pytest.raises(OptionError):
                parse_value("x", text, parser)
            continue
        assert parse_value("x", text, parser) == _in_python(kind, answer), text


def _in_python(kind: str, value: Any) -> Any:
    return value.getBytes() if kind == "memory" else value
