"""Policies, as TOML."""

from __future__ import annotations

from pathlib import Path

from karat.errors import InputError
from karat.formats import toml
from karat.formats.tables.detect import own_kind
from karat.formats.tables.source import Source, in_utf8
from karat.release.policy import Policy, policy_of

_EXAMPLE = '[[rule]] on a line, then measure = "nDCG@10", then max_drop = "5%"'


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
    try:
        content = toml.table(data)
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", file=name, fix=in_utf8(name)) from None
    except toml.NotToml as error:
        raise InputError(f"not valid TOML: {error}", file=name, fix=_EXAMPLE) from None
    return policy_of(content, name, rel)
