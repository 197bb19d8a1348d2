"""Bundles of every released version: they stay readable forever, and nothing in them changes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from alcid import AlcidError
from alcid.formats.file_index.keys import key_type
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    PayloadKind,
    probe,
)
from alcid.index.bundle.format import VERSION
from alcid.testing import flips
from tests.golden.bundle_cases import INDEX_TYPES, cases, described, table_of
from tests.golden_files import Golden, golden_files, golden_id
from tests.index.bundle.bundles import BIGINT

BUNDLES = golden_files("bundle")


@pytest.mark.parametrize("golden", BUNDLES, ids=golden_id)
def test_a_golden_bundle_says_what_it_said(golden: Golden) -> None:
    bundle = Bundle.open(BytesSource(golden.data, golden.path.stem))
    described_bundle = {"version": bundle.version, "size": len(golden.data), **described(bundle)}
    assert described_bundle == {key: golden.json[key] for key in described_bundle}


@pytest.mark.parametrize("golden", BUNDLES, ids=golden_id)
def test_the_case_is_written_with_the_same_content(golden: Golden) -> None:
    written = described(Bundle.open(BytesSource(cases()[golden.path.stem])))
    assert written == {key: golden.json[key] for key in written}


def test_there_are_golden_bundles_of_each_version() -> None:
    versions = {golden.path.parent.name for golden in BUNDLES}
    assert versions == {"1.0", VERSION}
    for version in versions:
        of_version = [bundle for bundle in BUNDLES if bundle.path.parent.name == version]
        assert {golden.path.stem for golden in of_version} == set(cases())


def golden_bundle(name: str, version: str = "1.0") -> Bundle:
    (golden,) = (golden for golden in BUNDLES if golden_id(golden) == f"{version}/{name}")
    return Bundle.open(BytesSource(golden.data, name))


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("name", ["indexes", "iceberg"])
def test_indexes_of_a_golden_bundle_answer(name: str, version: str, index_type: str) -> None:
    bundle = golden_bundle(name, version)
    for row in range(3):
        ids = table_of(row).column("id").to_pylist()
        keys = [value for value in ids if value is not None]
        reader = bundle.index(row, "id", index_type, key_type(BIGINT))
        assert reader is not None
        for key in (keys[0], keys[-1]):
            rows = reader.is_in([key]).rows
            exact = [row for row, value in enumerate(ids) if value == key]
            assert rows is None if index_type == "bloom-filter" else list(rows or ()) == exact
        assert reader.is_in([-5]).skip


def test_bloom_filters_of_a_golden_bundle_are_probed() -> None:
    bundle = golden_bundle("indexes")
    files = bundle.files
    bundle_set = BundleSet([bundle], files.paths, files.sizes, files.versions)
    coverage = bundle_set.coverage(PayloadKind.index("id", "bloom-filter"))
    answer = probe(coverage, np.arange(3), [55], key_type(BIGINT))
    assert (answer.may_match.tolist(), answer.damage) == ([False, True, False], {})


@pytest.mark.parametrize("golden", BUNDLES, ids=golden_id)
def test_no_damage_to_a_golden_bundle_goes_unnoticed(golden: Golden) -> None:
    kept = ("files", "statistics", "payloads", "others", "replaces")
    expected = {key: golden.json[key] for key in kept}
    seen = 0
    # An odd step, so that every byte of the numbers is reached.
    for damage in islice(flips(golden.data), 0, None, len(golden.data) // 150 * 2 + 1):
        try:
            result = described(Bundle.open(BytesSource(damage.data)))
        except AlcidError:
            seen += 1
        else:
            assert result == expected, damage.what
    assert seen > 100
