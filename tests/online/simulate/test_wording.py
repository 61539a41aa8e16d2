"""Wordings: what is typed instead is the kind of change that its name says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from karat.online.simulate.wording import (
    ADD,
    DROP,
    FIRST,
    NEXT,
    OWN,
    REORDER,
    RESPELL,
    SUBSTITUTE,
    available,
    wordings,
)

WORD = st.text("abcdefg", min_size=1, max_size=7)
TEXT = st.lists(WORD, min_size=1, max_size=5).map(" ".join)


@given(texts=st.lists(TEXT, min_size=1, max_size=6), seed=st.integers(0, 1 << 32))
def test_each_wording_is_what_it_is_called(texts: list[str], seed: int) -> None:
    worded = wordings(texts, np.random.default_rng(seed))
    for text, row in zip(texts, worded, strict=True):
        own = text.split()
        assert row[OWN] == text
        if (added := row[ADD]) is not None:
            assert added.split()[:-1] == own
            assert added.split()[-1] not in own
        assert (row[DROP] is None) == (len(own) < 2)
        if (dropped := row[DROP]) is not None:
            assert len(dropped.split()) == len(own) - 1
        if (other := row[SUBSTITUTE]) is not None:
            assert len(other.split()) == len(own) >= 3
            assert sum(a != b for a, b in zip(own, other.split(), strict=True)) == 1
        if (slip := row[RESPELL]) is not None:
            assert slip != text
            assert sorted(slip) == sorted(text)
            assert sum(a != b for a, b in zip(slip, text, strict=True)) == 2
        if (turned := row[REORDER]) is not None:
            assert turned != text
            assert sorted(turned.split()) == sorted(own)
    assert available(worded)[:, OWN].all()


def test_the_chances_are_chances() -> None:
    assert np.allclose(NEXT.sum(axis=1), 1)
    assert np.isclose(FIRST.sum(), 1)
    assert not np.diag(NEXT).any()  # nobody says the same twice and calls it other words


def test_one_word_alone_has_few_other_forms() -> None:
    ((own, add, drop, substitute, respell, reorder),) = wordings(["io"], np.random.default_rng(1))
    assert (own, add, drop, substitute, respell, reorder) == ("io", *[None] * 5)
