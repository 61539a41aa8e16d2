"""Secrets of what karat connects to, read when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from karat.errors import UsageError
from karat.tables.engines import Secret


def secret_value(value: str | Secret, where: str, root: Path, variables: Mapping[str, str]) -> str:
    """A text, or a secret read from the environment or a file; one line of ASCII in a header."""
    if isinstance(value, str):
        text = value
    elif value.env:
        if value.env not in variables:
            raise UsageError(
                f"{where}: the environment variable {value.env} is not set",
                fix=f"export {value.env}=…",
            )
        text = variables[value.env]
    else:
        try:
            text = (root / value.file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            raise UsageError(f"{where}: {value.file} cannot be read: {error}") from None
    if not where.endswith(" url") and not (text.isprintable() and text.isascii()):
        raise UsageError(f"{where} has invalid characters")
    return text
