"""Policies, as TOML."""

from __future__ import annotations

from pathlib import Path

from karat.errors import InputError
from karat.formats import toml
from karat.formats.tables.detect import own_kind
from karat.formats.tables.source import Source
from karat.release.policy import Policy, policy_of


def write_policy(text: str, path: str | Path) -> None:
    place = Path(path)
    try:
        with place.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(
            "the file already exists",
            file=str(path),
            fix="choose another name, or delete it",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


def read_policy(path: str | Path, rel: float | None = None) -> Policy:
    with Source(path) as source:
        data, name, kind = source.whole(), source.name, own_kind(source)
    if kind not in {None, "a policy"}:
        what = f"expected a policy (TOML), got {kind}"
        raise InputError(what, file=name, fix="choose a policy, such as gate.toml")
    return policy_of(toml.parsed(data, name), name, rel)
