"""karat serve: what it prints and refuses; how it serves is tested in tests/web/test_server.py."""

from __future__ import annotations

import getpass
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from karat.cli.mistakes import PACKAGES
from karat.cli.workspace import serve
from karat.web import server
from karat.web.server import Serving, listen

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Serving]:
    """How it would have served: nothing is served here."""
    told: list[Serving] = []

    def run(where: Serving, _listening: object) -> int:
        told.append(where)
        return 0

    monkeypatch.setattr(server, "run", run)
    return told


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Links that a browser was opened for."""
    told: list[str] = []
    monkeypatch.setattr(serve, "_open", told.append)
    return told


def test_on_this_machine_a_link_lets_in_whoever_typed_it(
    typed: Any, runs: list[Serving], opens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "has_screen", lambda _: True)
    monkeypatch.setenv("KARAT_RATER", "anna")
    typed("init")
    said = typed("serve --port 0").out
    where = runs[0].settings
    assert (where.accounts, where.owner, where.hosts) == (False, "anna", server.LOCAL)
    assert opens == [said.split("(it works once): ")[1].splitlines()[0]]
    assert opens[0].startswith(f"http://127.0.0.1:{runs[0].port}/link/")
    typed("serve --port 0 --no-browser")
    assert len(opens) == 1


def test_for_others_it_asks_for_accounts_and_prints_the_first_owners_link_once(
    typed: Any, runs: list[Serving], opens: list[str]
) -> None:
    typed("init")
    line = "serve --port 0 --host 0.0.0.0 --name karat.example.org --base-path karat/ --log json"
    bounds = "--max-upload 1.5MB --workers 3 --timeout 1 --connections 8"
    done = typed(f"{line} --https --proxy 10.0.0.1 {bounds}")
    assert "https://karat.example.org/karat/invited/" in done.out
    assert done.err == ""
    where = runs[0]
    assert (where.workers, where.settings.proxies, where.log) == (3, ("10.0.0.1",), "json")
    assert (where.settings.base, where.settings.max_upload) == ("/karat", 3 * 2**19)
    assert (where.settings.patience_s, where.settings.connections) == (1, 8)
    assert where.settings.secure
    again = typed(line)
    assert "/invited/" not in again.out
    how = again.out.split("print a new one:\n  ")[1].splitlines()[0]
    assert "/invited/" in typed(how.removeprefix("karat ")).out
    assert "passwords are sent unencrypted" in again.err
    assert opens == []


@pytest.mark.parametrize("option", ["--name karat.example.org", "--proxy 127.0.0.1", "--https"])
def test_behind_a_proxy_on_this_machine_there_are_accounts_too(
    typed: Any, runs: list[Serving], option: str
) -> None:
    """Else whoever comes by the proxy would need nothing but a link that was printed."""
    typed("init")
    typed(f"serve --port 0 {option}")
    assert runs[0].settings.accounts


def test_a_name_that_leads_to_nobody_is_said(typed: Any, runs: list[Serving]) -> None:
    typed("init")
    said = "127.0.0.1 is reachable from this machine only: use --host 0.0.0.0"
    assert said in typed("serve --port 0 --name 192.168.1.7").err
    assert said not in typed("serve --port 0 --name karat.example.org --proxy 127.0.0.1").err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serve", "is not in a workspace"),
        ("serve --workers 0", "not in the range"),
        ("serve --max-upload much", "invalid file size"),
        ("serve --max-upload 0", "invalid file size"),
        ("serve --log xml", "did you mean"),
        ("serve --port 70000", "not in the range"),
    ],
)
def test_mistakes_are_said_with_what_to_do(typed: Any, line: str, said: str) -> None:
    err = typed(line, code=2).err
    assert said in err or "is not one of" in err
    assert "fix: " in err


def test_a_port_that_is_taken_is_said(typed: Any) -> None:
    typed("init")
    with listen("127.0.0.1", 0) as held:
        err = typed(f"serve --port {held.getsockname()[1]}", code=2).err
    assert "is already in use" in err
    assert "which is free" in err


def test_without_its_packages_it_says_how_to_get_them(
    typed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "argon2" else 1)
    err = typed("serve", code=2).err
    assert "karat serve needs the package argon2" in err
    assert "pip install 'karat[web]'" in err


def test_all_that_is_missing_is_named_at_once(
    typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {*PACKAGES["web"], "polars"} - {"sqlalchemy", "alembic", "uvicorn"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: 1 if name in installed else None)
    assert typed("serve", code=2).err == (
        "karat: karat serve needs the packages sqlalchemy, alembic, uvicorn\n"
        "  fix: pip install 'karat[web]'\n"
    )
    assert typed("online evaluate --engine duckdb", code=2).err == (
        "karat: a log of events needs the packages sqlalchemy, alembic, duckdb, pyarrow\n"
        "  fix: pip install 'karat[store,duckdb]'\n"
    )
    (tmp_path / "karat.toml").write_text('[workspace]\nstore = "postgresql://u@host/d"\n')
    assert typed("serve", code=2).err.endswith("fix: pip install 'karat[web,postgres]'\n")
    assert typed("golden status", code=2).err == (
        "karat: a workspace needs the packages sqlalchemy, alembic, psycopg\n"
        "  fix: pip install 'karat[postgres]'\n"
    )


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_driver_that_alone_is_missing_is_named(
    typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "psycopg" else 1)
    (tmp_path / "karat.toml").write_text(f'[workspace]\nstore = "{scheme}://u@host/d"\n')
    for line, what in (("serve", "karat serve"), ("golden status", "a workspace")):
        assert typed(line, code=2).err == (
            f"karat: {what} needs the package psycopg\n  fix: pip install 'karat[postgres]'\n"
        )


def test_each_extra_is_looked_for_whole() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    modules: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for name in distributions:
            modules.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(module)

    def distributions(extra: str) -> set[str]:
        found = set()
        for requirement in extras[extra]:
            name, _, inner = re.split(r"[\]>=]", requirement)[0].partition("[")
            included = inner.split(",") if name == "karat" else []
            found |= {each for one in included for each in distributions(one)} or {name}
        return found

    assert set(PACKAGES) == set(extras) - {"all"}
    for extra, packages in PACKAGES.items():
        lacking = [n for n in distributions(extra) if not modules[n] & set(packages)]
        assert not lacking, extra
        assert len(packages) == len(set(packages)) == len(distributions(extra)), extra


def test_who_types_it_and_whether_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.delenv("KARAT_RATER", raising=False)
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert serve.who() == "owner"
    monkeypatch.setattr(sys, "platform", "linux")
    assert not serve.has_screen({})
    assert serve.has_screen({"WAYLAND_DISPLAY": "wayland-0"})
    monkeypatch.setattr(sys, "platform", "darwin")
    assert serve.has_screen({})
    assert not serve.has_screen({"SSH_CONNECTION": "1"})


def test_a_folder_that_holds_no_workspace_says_how_to_make_one(typed: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "karat init" in typed("serve -w empty", code=2).err
