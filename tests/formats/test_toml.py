"""TOML that cannot be read ends in a sentence, whichever file it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats import toml
from karat.formats.events.mapping import read_mapping
from karat.formats.own.policy import read_policy
from karat.formats.own.workspace import read_workspace

DEEP = b"x=" + b"[" * 50_000  # deeper than Python's stack
ENDLESS = b"x=" + b"9" * 5_000  # more digits than Python turns into a number


def test_a_table() -> None:
    assert toml.table(b"\xef\xbb\xbf[a]\nb = 1\n") == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("data", "says"),
    [(DEEP, "nested too deeply"), (ENDLESS, "digits"), (b"x=", "Invalid value"), (b"=", "Invalid")],
)
@pytest.mark.parametrize("read", [read_policy, read_workspace, read_mapping])
def test_what_is_not_toml(
    read: Callable[[Path], object], data: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "karat.toml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read(path)
    assert caught.value.file == str(path)


def test_not_utf8() -> None:
    with pytest.raises(UnicodeDecodeError):
        toml.table(b"x = '\xe9'")
