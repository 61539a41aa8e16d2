"""karat people: accounts from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karat.cli.main import karat
from karat.errors import UsageError
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.workspace.workspace import make_workspace, open_workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, in which the command is typed."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    make_workspace(tmp_path / "shop", now=NOW)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def typed(*words: str) -> Result:
    """Type it."""
    return CliRunner().invoke(karat, ["people", *words], catch_exceptions=False)


def test_the_first_owner_comes_by_a_link(root: Path) -> None:
    assert "karat people invite NAME --role owner" in typed("list").stdout
    said = typed("invite", "anna", "--role", "owner", "--url", "https://karat.example.org/k/")
    address = said.stdout.strip()
    assert address.startswith("https://karat.example.org/k/invited/")
    with open_workspace(root, now=NOW) as opened:
        accounts = Accounts(opened.store, lambda: NOW)
        # The command has the machine's clock, and this its own, later or earlier.
        made = accounts.done().row(0, named=True)
        assert made["person"].endswith("(command line)")
        assert (made["action"], made["subject"], made["about"]) == ("invite", "anna", "role owner")
    assert typed("invite", "ben").stdout.startswith("/invited/")


def test_a_second_link_says_that_the_first_no_longer_works(root: Path) -> None:
    first = typed("invite", "ben")
    assert (first.exit_code, first.stderr) == (0, "")
    second = typed("invite", "ben")
    assert second.stdout.startswith("/invited/"), "the link alone: scripts read it"
    assert second.stderr == "karat: the earlier link for ben no longer works\n"
    with open_workspace(root, now=NOW) as opened:
        Accounts(opened.store, lambda: NOW).local("anna")
    assert typed("new-password", "anna").stderr == ""
    assert "the earlier link for anna no longer works" in typed("new-password", "anna").stderr


def test_roles_and_shutting_out(root: Path) -> None:
    with open_workspace(root, now=NOW) as opened:
        accounts = Accounts(opened.store, lambda: NOW)
        for name in ("anna", "ben"):
            accounts.local(name)
    assert typed("role", "ben", "rater").exit_code == 0
    assert typed("shut-out", "ben").exit_code == 0
    rows = json.loads(typed("list", "-f", "json").stdout)
    told = {r["person"]["name"]: (r["person"]["role"], r["disabled_us"] is None) for r in rows}
    assert told == {"anna": ("owner", True), "ben": ("rater", False)}
    assert "disabled" in typed("list").stdout
    with pytest.raises(UsageError, match="last owner"):
        typed("shut-out", "anna")
    with pytest.raises(UsageError, match="ben is disabled"):
        typed("new-password", "ben")
    assert typed("let-in", "ben").exit_code == 0
    assert typed("new-password", "ben").stdout.startswith("/invited/")
    with pytest.raises(UsageError, match="unknown user 'bn'; did you mean ben"):
        typed("let-in", "bn")
