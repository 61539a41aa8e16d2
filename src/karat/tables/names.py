"""Names: what people may call themselves and what they make.

One rule for the names of people, golden sets, editions, runs and comparisons, wherever they are
typed. It holds for new names; what was stored before it stays readable under its name.
"""

from __future__ import annotations

import re

from karat.errors import UsageError

_PARTS = re.compile(r"[/\\]")


def check_name(
    name: str, of: str, *, longest: int, slashes: bool = True, fix: str | None = None
) -> None:
    """Refuse a name that cannot be read, or that leads elsewhere as a path.

    Args:
        name: The name.
        of: What it is of, with its article: ``a run``.
        longest: Characters at most.
        slashes: Whether it may hold slashes, as ``lab/model`` does.
        fix: What to do about it; said where the rule itself does not.

    Raises:
        UsageError: the name is empty or too long; holds characters that cannot be seen, such as
            line ends and those that turn the direction of text; or has a part of a path that is
            empty, ``.`` or ``..``.
    """
    if not name.strip():
        raise UsageError(f"the name of {of} is empty", fix=fix)
    if len(name) > longest:
        raise UsageError(
            f"the name of {of} has at most {longest} characters, and this one has {len(name):,}",
            fix=fix or "choose a shorter one",
        )
    if not name.isprintable():
        raise UsageError(
            f"the name of {of} holds characters that cannot be seen: {name!a}",
            fix=fix or "leave them out",
        )
    if not is_plain(name, slashes=slashes):
        raise UsageError(
            f"the name of {of} cannot be {name!r}: it reads as a path",
            fix=fix or "leave out slashes at its ends, and parts that are . or ..",
        )


def is_plain(name: str, *, slashes: bool = True) -> bool:
    """Whether a name can be seen, and leads nowhere as a path."""
    path = bool({"", ".", ".."}.intersection(_PARTS.split(name)))
    return name.isprintable() and not path and (slashes or "/" not in name)
