"""Policies as TOML files."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.own.policy import read_policy


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text('\ufeff[[rule]]\r\nmeasure = "nDCG@10"\r\nmax_drop = "5%"\r\n', "utf-8")
    policy = read_policy(path)
    assert policy.rules[0].drop_text == "drops by at most 5%"
    assert policy.source == str(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[[rule]\nmeasure = 'AP'\n", "not valid TOML"),
        (b"[[rule]]\nmeasure = '\xff'", "not UTF-8"),
        (b"", "the file is empty"),
        (b"# nothing", "has no rule"),
        (b"[[rule]]\nmeasure = 'AP'\nmax_dorp = 1\n", "did you mean max_drop"),
    ],
)
def test_a_damaged_file_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as error:
        read_policy(path)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gate\.toml"):
        read_policy(tmp_path / "gate.toml")
