"""Whether a query is a question or keywords, by a rule: a question mark, or how it begins.

The rule reads characters, not meaning. A question in other words ("python version check how") or in
a language without a list here, and without a question mark, is taken for keywords; a name that
begins like a question ("What Women Want") for a question.
"""

from __future__ import annotations

import re
import unicodedata

_MARKS = "?\uff1f\ufe56\u061f\u037e\u1367\u2e2e\u203d\u2047\u2048\u2049\ua60f"
"""Question marks: Latin, full-width, small, Arabic, Greek, Ethiopic, reversed, and ones combined
with others; Vai."""
_OPENING = "\u00bf\u055e"  # begins a Spanish question; stands inside an Armenian one
_CLOSING = "\"'\u201d\u2019\u00bb)]}!. "


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKING = {
    "en": "what when where which who whom whose why how",
    "de": "was wann wo wohin woher welche welcher welches welchen welchem wer wem wen wessen "
          "warum wieso weshalb wie womit wodurch wofür wozu",
    "fr": "que qu quel quelle quels quelles qui quoi quand où pourquoi combien",
    "es": "qué que cómo como cuándo cuando dónde donde cuál cual cuáles cuales quién quien "
          "quiénes quienes cuánto cuanto cuánta cuántos cuántas",
}  # fmt: skip
"""Words that begin a question, by language. French *comment* is left out: it is also an English
noun, and "comment block" is not a question."""
_FIRST = _words(" ".join(_ASKING.values()))

_INVERTED = _words("is are was were am do does did can could should would")
"""English verbs that begin a question of three words and more ("does python copy lists")."""
_RATHER = _words("will shall may might must has have had")
"""Those that begin names and commands too ("will smith movies"): a subject must follow."""
_SUBJECTS = _words(
    "i you he she it we they one someone anyone there this that these those the a an any my your "
    "his her its our their"
)
_WORD = re.compile(r"[^\W\d_]+")


def is_question(text: str) -> bool:
    """Whether a query is a question.

    It is if it ends with a question mark of any script, contains an inverted one, begins with an
    interrogative word (English, German, French, Spanish), or with an English auxiliary verb before
    its subject. Case does not matter.

    Args:
        text: The query as it was typed.
    """
    bare = text.strip()
    if bare.rstrip(_CLOSING).endswith(tuple(_MARKS)) or any(mark in bare for mark in _OPENING):
        return True
    plain = unicodedata.normalize("NFC", bare).casefold()  # not above: it makes ; of Greek marks
    words = [match[0] for word in plain.split() if (match := _WORD.search(word))]
    if not words:
        return False
    if words[0] in _FIRST:
        return len(words) > 1
    if words[0] in _RATHER:
        return len(words) > 2 and words[1] in _SUBJECTS
    return len(words) > 2 and words[0] in _INVERTED
