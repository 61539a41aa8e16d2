"""Sealed texts: what went in comes out, for nobody and nothing else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.web.framework.signed_values import seal, unseal

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(WORDS, WORDS, st.lists(st.one_of(WORDS, st.integers()), max_size=4))
def test_what_was_sealed_is_unsealed_with_the_same_key_for_the_same(
    plain: str, key: str, about: list[object]
) -> None:
    sealed = seal(plain.encode(), key, about)
    assert unseal(sealed, key, about) == plain.encode()
    assert unseal(sealed, key + "x", about) is None
    assert unseal(sealed, key, [*about, "x"]) is None


def test_what_it_is_good_for_is_not_run_together() -> None:
    assert unseal(seal(b"x", "key", ["a", "bc"]), "key", ["ab", "c"]) is None


def test_one_text_is_never_sealed_alike_and_does_not_show() -> None:
    many = [seal(b"gold" * 30, "key", []) for _ in range(50)]
    raw = [base64.urlsafe_b64decode(each + "=" * (-len(each) % 4)) for each in many]
    assert len(set(raw)) == 50
    # Version, time, initialisation vector, the text in blocks of 16, and the tag.
    assert {len(each) for each in raw} == {1 + 8 + 16 + 128 + 32}
    assert not any(b"gold" in each for each in raw)


def test_no_bit_of_it_can_be_changed() -> None:
    sealed = seal(b"slot 7", "key", ["ann"])
    raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    for place in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[place // 8] ^= 1 << place % 8
        assert unseal(base64.urlsafe_b64encode(changed).decode(), "key", ["ann"]) is None


@pytest.mark.parametrize("wrong", ["", "=", "é", "a", "AAAA", "a b", "\ud800", "A" * 4000])
def test_what_is_no_seal_opens_nothing(wrong: str) -> None:
    assert unseal(wrong, "key", []) is None
