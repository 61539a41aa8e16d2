"""Whether a machine judge and a system it grades are of one family of models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from karat.tables.golden.machine_judges import JudgeConfig

_FAMILIES = {
    "gpt": r"gpt|\bo[134]\b|davinci|text-embedding-(3|ada)|openai",
    "claude": r"claude|anthropic",
    "gemini": r"gemini|gemma|palm|text-embedding-0\d\d|gecko|google/",
    "llama": r"llama",
    "mistral": r"(mi|mini|code|pix|magi)stral|mixtral",
    "qwen": r"qwen|qwq|\bgte\b",
    "deepseek": r"deepseek",
    "command": r"\bcommand\b|cohere|rerank-(v?\d|english|multilingual)|embed-(v\d|english|multi)",
    "phi": r"\bphi-?\d",
    "grok": r"\bgrok\b",
}
_NAMES_A_MODEL = ("model", "family", "generator", "reranker", "rewriter")
"""Last words of the keys of a run's metadata that name a model."""


def family_of(model: str) -> str:
    """The family of a model, by its name; empty if unknown."""
    name = model.casefold()
    found = (each for each, pattern in _FAMILIES.items() if re.search(pattern, name))
    return next(found, "")


def family_note(config: JudgeConfig, abouts: Sequence[tuple[str, Mapping[str, str]]]) -> str | None:
    """A warning about runs that use a model of the judge's own family; None without any.

    Args:
        config: With its declared family, or that of its model.
        abouts: Name and metadata of each run.
    """
    own = config.family.casefold() or family_of(config.model)
    found: dict[str, str] = {}
    for run, about in abouts if own else ():
        for key, value in about.items():
            names_a_model = re.split(r"[._-]", key)[-1] in _NAMES_A_MODEL
            if names_a_model and own in (value.casefold(), family_of(value)):
                found.setdefault(run, value)
    if not found:
        return None
    named = ", ".join(f"{run} ({model})" for run, model in found.items())
    return (
        f"{config.name} ({config.family or config.model}) is of the same family of models as "
        f"{named}, and may favour it; compare with a judge of another family"
    )
