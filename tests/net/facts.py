"""What a text says in numbers and names, whatever its words are."""

from __future__ import annotations

import json
import re
from typing import Any

NUMBER = re.compile(r"(?<![A-Za-z])[-+−]?(?:\d+(?:,\d{3})+|\d+)?\.?\d+(?:e[-+]?\d+)?", re.ASCII)


def facts_of(text: str) -> list[str]:
    """The numbers of a text in their order; of JSON, its keys and values.

    Of a value that is a sentence, its numbers alone: words may change. JSON may stand between the
    command and its messages, as the expected outputs have it.
    """
    found: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        end = _end_of_json(lines, at)
        if end is None:
            found += NUMBER.findall(lines[at])
            at += 1
        else:
            _collect(json.loads("\n".join(lines[at:end])), "", found)
            at = end
    return found


def _end_of_json(lines: list[str], at: int) -> int | None:
    """The line after the JSON that begins here, if one does."""
    closes = {"{": "}", "[": "]"}.get(lines[at][:1])
    if closes is None:
        return None
    ends = [at] if lines[at].endswith(closes) else []
    ends += [n for n in range(at + 1, len(lines)) if lines[n].rstrip() == closes][:1]
    for end in ends:
        try:
            json.loads("\n".join(lines[at : end + 1]))
        except ValueError:
            continue
        return end + 1
    return None


def _collect(value: Any, where: str, found: list[str]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            _collect(each, f"{where}.{key}", found)
        if not value:
            found.append(f"{where} {{}}")
    elif isinstance(value, list):
        for each in value:
            _collect(each, f"{where}[]", found)
        if not value:
            found.append(f"{where} []")
    elif isinstance(value, str) and re.search(r"\s", value.strip()):
        found += [f"{where} text", *NUMBER.findall(value)]
    else:
        found.append(f"{where} {json.dumps(value, ensure_ascii=False)}")
