"""Sources of judgments in words."""

from __future__ import annotations

_WORDS = {"human": "people", "llm": "machines", "clicks": "clicks", "import": "an import"}


def whose(sources: str) -> str:
    """Whose judgments they are: ``people and an import`` for ``human+import``."""
    return " and ".join(_WORDS.get(source, source) for source in sources.split("+"))
