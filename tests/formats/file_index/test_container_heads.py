from __future__ import annotations

import pytest

from alcid import FormatError
from alcid.formats.file_index.container import Container, ContainerHeads, write_container
from alcid.formats.source import BytesSource


def container(*payloads: bytes, column: str = "c") -> bytes:
    return write_container({(column, f"type-{n}"): payload for n, payload in enumerate(payloads)})


def test_heads_are_read_as_one_by_one() -> None:
    heads = ContainerHeads()
    for data in (
        container(b"abc", b"de"),
        container(b"a", b""),
        container(b"abc", b"de", column="d"),
        container(b"", b"xyz"),
        container(b"x" * 200, b"y"),
    ):
        source = BytesSource(data, "x.index")
        for at_hand in (len(data), 63, 62, 15, 0):
            assert tuple(heads.read(source, data[:at_hand])) == Container.open(source).entries


@pytest.mark.parametrize("seen_before", [False, True])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "indexes do not fill the file at offset 68"),
        (lambda data: data + b"\0", "indexes do not fill the file at offset 68"),
        (
            lambda data: data[:35] + b"\0\0\0\7" + data[39:],
            "index type-0 of 'c' out of place at offset 35",
        ),
    ],
    ids=["shorter", "longer", "elsewhere"],
)
def test_a_wrong_head_is_named_even_if_a_similar_one_was_read(
    seen_before: bool, damage: object, message: str
) -> None:
    data = container(b"abc", b"de")
    heads = ContainerHeads()
    if seen_before:
        heads.read(BytesSource(data), data)
    damaged = damage(data)  # type: ignore[operator]
    with pytest.raises(FormatError) as raised:
        heads.read(BytesSource(damaged, "x.index"), damaged)
    assert str(raised.value).startswith(f"x.index: {message}")
