from __future__ import annotations

import numpy as np
import pytest

from alcid.formats.theta import sketch
from alcid.formats.theta.compact import MAX_THETA, CompactTheta
from alcid.formats.theta.sketch import lowest_hashes, unite


def hashes_of(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def said(kept: CompactTheta) -> tuple[list[int], int]:
    assert kept.hashes.dtype == np.uint64
    return kept.hashes.tolist(), kept.theta


def test_hashes_at_theta_or_above_change_nothing() -> None:
    first = hashes_of(5, 9, 7)
    assert said(lowest_hashes([first], 2)) == ([5, 7], 9)
    assert said(lowest_hashes([first, hashes_of(9, 10, MAX_THETA)], 2)) == ([5, 7], 9)
    assert said(lowest_hashes([first, hashes_of(8)], 2)) == ([5, 7], 8)
    assert said(lowest_hashes([], 2)) == ([], MAX_THETA)


def test_as_many_as_are_wanted_leave_theta_where_it_is() -> None:
    assert said(lowest_hashes([hashes_of(5, 7, 5)], 2)) == ([5, 7], MAX_THETA)
    first, other = CompactTheta(8, hashes_of(3)), CompactTheta(6, hashes_of(2, 5))
    assert said(unite(first, other, 3)) == ([2, 3, 5], 6)
    assert said(unite(first, other, 2)) == ([2, 3], 5)
    assert said(unite(CompactTheta(8, hashes_of(7)), other)) == ([2, 5], 6)


def test_blocks_of_any_size_keep_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = np.array_split(np.random.default_rng(5).integers(1, 500, 300).astype(np.uint64), 3)
    whole = np.unique(np.concatenate(parts))
    monkeypatch.setattr(sketch, "_FIRST_BLOCK", 7)
    monkeypatch.setattr(sketch, "_BLOCK", 31)
    assert said(lowest_hashes(parts, 20)) == (whole[:20].tolist(), int(whole[20]))


def test_the_alpha_rule_passes_over_blocks_above_theta() -> None:
    rule = sketch.AlphaRule(nominal_entries=2)
    rule.add(hashes_of(100, 200, 300))
    theta = int(MAX_THETA * (2 / 3))
    assert said(rule.kept()) == ([100, 200, 300], theta)
    rule.add(hashes_of(theta, theta + 1, MAX_THETA))
    assert said(rule.kept()) == ([100, 200, 300], theta)
    rule.add(hashes_of(200, 0))
    assert said(rule.kept()) == ([100, 200, 300], theta)
    rule.add(hashes_of(theta - 1))
    assert said(rule.kept()) == ([100, 200, 300], int(theta * (2 / 3)))


def test_the_alpha_rule_takes_1_and_not_0() -> None:
    rule = sketch.AlphaRule(nominal_entries=2)
    rule.add(hashes_of(1, 0))
    assert said(rule.kept()) == ([1], MAX_THETA)
