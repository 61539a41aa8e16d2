"""Policies, as TOML."""

from __future__ import annotations

from pathlib import Path

from karat.errors import Advice, InputError
from karat.formats import toml
from karat.formats.tables.detect import own_kind
from karat.formats.tables.source import Source, in_utf8
from karat.release.policy import Policy, policy_of

_EXAMPLE = '[[rule]] on a line, then measure = "nDCG@10", then max_drop = "5%"'


def write_policy(text: str, path: str | Path) -> None:
    """Write a policy to a file that is not there yet.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    place = Path(path)
    try:
        with place.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(
            "there is a file of this name, and it is left as it is",
            file=str(path),
            fix="name another, or delete it",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


def read_policy(path: str | Path, rel: float | None = None) -> Policy:
    """A policy from a TOML file.

    Args:
        path: The file.
        rel: Lowest grade that counts as relevant, where a measure does not say.

    Raises:
        InputError: it cannot be read, is no TOML, or is no policy (what, and the fix).
    """
    with Source(path) as source:
        data, name, kind = source.whole(), source.name, own_kind(source)
    if kind not in {None, "a policy"}:
        what = f"this is {kind}, and a policy (TOML) is wanted here"
        raise InputError(
            what, file=name, fix=Advice("karat gate --policy gate.toml …", page="send a policy")
        )
    try:
        written = toml.table(data)
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8", file=name, fix=in_utf8(name)) from None
    except toml.NotToml as error:
        raise InputError(f"it is no TOML: {error}", file=name, fix=_EXAMPLE) from None
    return policy_of(written, name, rel)
