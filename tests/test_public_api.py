"""The list of the public API is what the code offers."""

from __future__ import annotations

from tests.public_api import LIST, public_api


def test_list_of_the_public_api_is_up_to_date() -> None:
    """If it is not, and the change is meant: python -m tests.public_api."""
    assert LIST.read_text("utf-8") == public_api()
