"""What people type: a query's own words and the words they try instead, and the keys on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

OWN, ADD, DROP, SUBSTITUTE, RESPELL, REORDER = range(6)
WORDINGS = ("own", "add", "drop", "substitute", "respell", "reorder")
"""Ways to word one need; what they are called is seen from the query's own words."""

NEXT = np.array(
    [
        # own    add   drop  substitute respell reorder
        [0.00, 0.40, 0.20, 0.25, 0.05, 0.10],  # after its own words
        [0.35, 0.00, 0.25, 0.35, 0.00, 0.05],  # after one word more
        [0.60, 0.20, 0.00, 0.20, 0.00, 0.00],  # after one word less
        [0.40, 0.30, 0.30, 0.00, 0.00, 0.00],  # after another word
        [0.90, 0.05, 0.05, 0.00, 0.00, 0.00],  # after a slip of the finger
        [0.30, 0.35, 0.20, 0.15, 0.00, 0.00],  # after another order
    ]
)
"""Which wording people try next, by the one they tried last; rows sum to 1."""
FIRST = np.array([0.82, 0.0, 0.08, 0.0, 0.10, 0.0])  # which wording people begin with


def wordings(texts: Sequence[str], rng: np.random.Generator) -> list[list[str | None]]:
    """For each text its wordings, in the order of ``WORDINGS``; None where there is none.

    Words to add or to put in another's place come from the other texts.
    """
    words = list(dict.fromkeys(word for text in texts for word in text.split()))
    found = []
    for text in texts:
        own = text.split()
        new = _new_word(own, words, rng)
        found.append(
            [
                text,
                f"{text} {new}" if new else None,
                _dropped(own, rng),
                _substituted(own, new, rng),
                _respelt(own, rng),
                _reordered(own),
            ]
        )
    return found


def available(worded: Sequence[Sequence[str | None]]) -> np.ndarray:
    """Which wordings there are: flags of shape (queries, wordings)."""
    return np.array([[text is not None for text in row] for row in worded], dtype=bool)


def _new_word(own: list[str], words: list[str], rng: np.random.Generator) -> str | None:
    for _ in range(8):
        if words and (word := words[int(rng.integers(len(words)))]) not in own:
            return word
    return None


def _dropped(own: list[str], rng: np.random.Generator) -> str | None:
    if len(own) < 2:
        return None
    at = int(rng.integers(len(own)))
    return " ".join(own[:at] + own[at + 1 :])


def _substituted(own: list[str], new: str | None, rng: np.random.Generator) -> str | None:
    # With fewer words the two would have less than half in common: another query, not a new form.
    if len(own) < 3 or new is None:
        return None
    at = int(rng.integers(len(own)))
    return " ".join([*own[:at], new, *own[at + 1 :]])


def _respelt(own: list[str], rng: np.random.Generator) -> str | None:
    """Two letters of the longest word change places."""
    at = max(range(len(own)), key=lambda i: len(own[i]), default=0)
    if not own or len(own[at]) < 4:
        return None
    word = own[at]
    swaps = [i for i in range(1, len(word) - 1) if word[i] != word[i + 1]]
    if not swaps:
        return None
    i = swaps[int(rng.integers(len(swaps)))]
    slip = word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    return " ".join([*own[:at], slip, *own[at + 1 :]])


def _reordered(own: list[str]) -> str | None:
    turned = [*own[1:], *own[:1]]
    return " ".join(turned) if turned != own else None
