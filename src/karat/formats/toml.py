"""TOML from bytes, with errors that say what is wrong."""

from __future__ import annotations

import re
import tomllib
from typing import Any


class NotToml(ValueError):
    """The text is not valid TOML; the message says why, and where if known."""


def table(data: bytes) -> dict[str, Any]:
    """Parse TOML; a byte order mark is ignored."""
    text = data.decode("utf-8-sig")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise NotToml("values are nested too deeply") from None
    except ValueError as error:  # too long integers raise a ValueError, not a TOMLDecodeError
        raise NotToml(str(error)) from None


def line_of(data: bytes, section: str, key: str) -> int | None:
    """The line that sets a key of a section, from 1; None if not found."""
    inside = False
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), start=1):
        if (head := re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line)) is not None and "=" not in head[1]:
            inside = head[1].strip("\"'") == section
        name = re.escape(key)
        if inside and re.match(rf"\s*[\"']?{name}[\"']?\s*=", line):
            return number
    return None
