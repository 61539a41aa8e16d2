"""Question or keywords: the rule, in several languages, and where it ends."""

from __future__ import annotations

import pytest

from karat.diagnosis._query_slices import is_question

QUESTIONS = [
    "python sort list?", "خوارزمية الفرز؟", "并行 排序？", "τι ώρα είναι\u037e", "really?!",
    "¿el tiempo mañana", "how to bake bread", "What's a monad", "WHY  python", "wie backe ich Brot",
    "où manger", "ou\u0300 manger", "qu'est-ce que python", "cómo hacer pan", "como hacer pan",
    "does python copy lists", "is python faster than java", "can dogs eat apples",
    "will it rain tomorrow", "\u201chow to sort\u201d", "(is it safe?)",
]  # fmt: skip
KEYWORDS = [
    "python sort list", "", "??"[:0], "how", "who", "can opener", "will smith movies", "must have",
    "may 2024 calendar", "is-a relation", "comment block", "the who albums", "apfelkuchen rezept",
    "a?b operator", "python version check how", "127.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("text", QUESTIONS)
def test_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", KEYWORDS)
def test_keywords(text: str) -> None:
    assert not is_question(text)
