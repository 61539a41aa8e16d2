"""Rater names that are names of models."""

from __future__ import annotations

import re

# Words that do not occur in names of people.
_WORDS = r"""
    llms? | llm[-_ ]?judges? | auto[-_ ]?judge | umbrela | chat[-_ ]?gpt | chat[-_ ]?glm
    | gpt[-_ ]?\d\w* | gpt | rank(?:gpt|llama|zephyr|vicuna)
    | (?:code|tiny)?[-_ ]?llama[-_ ]?v?\d\w* | mixtral | qwen\d* | qwq | deepseek
"""
# Models that share their name with people or things: only with a version.
_VERSIONED = r"""
    claude (?: [-_]?v?\d\w* | [-_. ](?:instant|opus|sonnet|haiku) | [ ]\d+(?:[. ]\d+|[ ][a-z]+) )
    | gemini (?: [-_. ]?v?\d | [-_. ](?:pro|flash|ultra|nano) )
    | gemma [-_]?\d
    | grok [-_]?\d
    | (?:mi|mini|code|pix)stral [-_. ]? (?:\d | large | small | medium | nemo | tiny | latest )
    | phi [-_]\d
    | command [-_] (?:r|a)
    | o[134] [-_] (?:mini|preview|pro)
"""
# Names that are a model's only on their own.
_ALONE = r"gemini|llama|mistral|codestral|grok|o[134]"
# Not within a longer word: gptaylor, agpt.
_MODEL = re.compile(
    rf"(?<![^\W_]) (?: {_WORDS} | {_VERSIONED} ) (?![^\W_]*[^\W\d_]{{3}})", re.VERBOSE
)


def names_a_model(rater: str) -> bool:
    """Whether a rater's name is that of a model and not of a person.

    Names that people have too (Claude, Gemma, Mistral) need a version or a size:
    ``claude-3-opus`` is a model, ``claude.dupont`` and ``claude 2`` are not.
    """
    name = rater.strip().casefold()
    if "@" in name and "/" not in name:
        name = name.partition("@")[0]  # the person's part of an address
    return re.fullmatch(_ALONE, name) is not None or _MODEL.search(name) is not None
