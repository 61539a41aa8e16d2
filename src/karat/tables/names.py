"""The rule for new names of users, golden sets, editions, runs and comparisons.

Stored objects with older names stay readable under their names.
"""

from __future__ import annotations

import re

from karat.errors import UsageError

_PARTS = re.compile(r"[/\\]")


def check_name(
    name: str, of: str, *, longest: int, slashes: bool = True, fix: str | None = None
) -> None:
    """Reject a name that is unreadable, or that would be an unsafe path.

    Args:
        name: The name.
        of: The kind of object, with its article: ``a run``.
        longest: Maximum number of characters.
        slashes: Whether it may contain slashes, as in ``lab/model``.
        fix: Replaces the default advice of the error.

    Raises:
        UsageError: the name is empty or too long; contains invisible characters, such as line
            breaks and marks of text direction; or has a path segment that is empty, ``.`` or
            ``..``.
    """
    if not name.strip():
        raise UsageError(f"the name of {of} is empty", fix=fix)
    if len(name) > longest:
        raise UsageError(
            f"the name of {of} has {len(name):,} characters; the maximum is {longest}",
            fix=fix or "choose a shorter one",
        )
    if not name.isprintable():
        raise UsageError(
            f"the name of {of} contains invisible characters: {name!a}",
            fix=fix or "remove them",
        )
    if not is_plain(name, slashes=slashes):
        raise UsageError(
            f"the name of {of} cannot be a path: {name!r}",
            fix=fix or "remove slashes at its ends, and segments that are . or ..",
        )


def is_plain(name: str, *, slashes: bool = True) -> bool:
    """Whether a name is printable, and safe as a path."""
    path = bool({"", ".", ".."}.intersection(_PARTS.split(name)))
    return name.isprintable() and not path and (slashes or "/" not in name)
