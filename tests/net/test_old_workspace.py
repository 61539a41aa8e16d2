"""A workspace of an older karat opens, says what it said, and is served at its old addresses."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
from starlette.routing import compile_path
from starlette.testclient import TestClient
from tests.net.commands import NOW, repeatable, typed
from tests.net.facts import facts_of
from tests.net.snapshots import Snapshots
from tests.web.conftest import Browser
from tests.web.framework.test_auth import routes_of

from karat.store.sql import people
from karat.web.app import create_app
from karat.web.framework.settings import Settings

OLD = Path(__file__).resolve().parent / "old"
ASKED = {
    "status": "golden status -w old -f json",
    "editions": "golden editions -w old -f json",
    "agreement": "golden agreement -w old -f json",
    "evaluate": "evaluate old old/runs/bm25.trec old/runs/semantic-39914d85f5e5.parquet -f json",
    "gate": "gate --policy old/gate.toml old old/baseline.json old/runs/bm25.trec -f json",
    "verify": "compare --verify old/certificate.json -f json",
    "trend": "trend old/history.jsonl -f json",
    "online": "online evaluate -w old -m CTR -m ZeroResults -f json",
    "golden-export": "golden export -w old out.json --edition first --json",
}
SINCE_MOVE = "e742c9c574b2"
"""The last commit before modules were moved and renamed."""


def unpacked(folder: Path) -> Path:
    """The workspace as the older karat left it."""
    with tarfile.open(OLD / "workspace.tar.xz") as packed:
        packed.extractall(folder / "old", filter="data")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workspace, upgraded as the error of its first command says."""
    assert "karat init --upgrade" in typed(ASKED["status"], unpacked(tmp_path))
    upgraded = typed("init old --upgrade", tmp_path)
    assert upgraded.endswith("--- exit code 0"), upgraded
    return tmp_path


def test_it_says_what_it_said(folder: Path, snapshots: Callable[[str], Snapshots]) -> None:
    kept = snapshots("old")
    for name, line in ASKED.items():
        kept.check(f"{name}.txt", typed(line, folder))
    kept.holds_only([f"{name}.txt" for name in ASKED])


@pytest.mark.deep
def test_it_is_served_at_its_old_addresses(folder: Path, deep: bool) -> None:
    """A build looks for each among the routes, and asks for some."""
    addresses = (OLD / "addresses.txt").read_text(encoding="utf-8").splitlines()
    app = create_app(Settings(folder / "old", hosts=("127.0.0.1",)), lambda: NOW * 1_000_000)
    gone = {}
    with TestClient(app, base_url="http://127.0.0.1"), repeatable("old"):
        with app.state.site.workspace.store.begin() as connection:
            ann = people.add(connection, "ann", "owner", None, NOW * 1_000_000)
        browser = Browser(app, ann)
        known = [compile_path(each.path)[0] for each in routes_of(app) if each.method == "GET"]
        for address in addresses if deep else addresses[::12]:
            code = browser.get(address).status_code
            if code != 200:
                gone[address] = code
    assert len(addresses) == 81
    paths = [unquote(address.partition("?")[0]) for address in addresses]
    assert [path for path in paths if not any(each.match(path) for each in known)] == []
    assert not gone


@pytest.mark.deep  # tests/contracts/test_store_migrations.py
def test_its_store_on_postgresql_holds_the_same(folder: Path, database: Callable[..., str]) -> None:
    url = database("template0")
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        raw = connection.connection.cursor()
        raw.execute(lzma.decompress((OLD / "store.sql.xz").read_bytes()).decode())
        connection.connection.commit()
    engine.dispose()
    lines = [ASKED[name] for name in ("status", "editions", "agreement")]
    on_sqlite = [typed(line, folder) for line in lines]
    toml = folder / "old" / "karat.toml"
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text.replace("sqlite:///karat.db", url), encoding="utf-8")
    upgraded = typed("init old --upgrade", folder)
    assert upgraded.endswith("--- exit code 0"), upgraded
    on_postgresql = [typed(line, folder) for line in lines]
    assert "sqlite" in on_sqlite[0]
    assert "postgresql" in on_postgresql[0]
    assert [*map(_without_store, on_postgresql)] == [*map(_without_store, on_sqlite)]


def test_its_backup_is_restored(folder: Path) -> None:
    done = typed(f"restore {OLD / 'backup.tar.gz'} restored", folder)
    assert done.endswith("--- exit code 0"), done
    line = ASKED["agreement"]
    assert _body(typed(line.replace("-w old", "-w restored"), folder)) == _body(typed(line, folder))


@pytest.mark.deep
def test_numbers_are_those_of_the_version_before_the_move(folder: Path, root: Path) -> None:
    """The same files by both versions, each in a process of its own."""
    has = subprocess.run(
        ["git", "cat-file", "-e", f"{SINCE_MOVE}^{{commit}}"], cwd=root, check=False
    )
    if has.returncode:
        pytest.skip(f"this clone does not have the commit {SINCE_MOVE}")
    with tempfile.TemporaryDirectory() as place:
        source = subprocess.run(
            ["git", "archive", SINCE_MOVE, "src"], cwd=root, check=True, stdout=subprocess.PIPE
        )
        subprocess.run(["tar", "x", "-C", place], input=source.stdout, check=True)
        before = unpacked(Path(place))  # the older version does not read an upgraded store
        for name, line in ASKED.items():
            then, now = (
                subprocess.run(
                    [sys.executable, "-m", "karat.cli.main", *line.split()],
                    cwd=where,
                    env={**os.environ, "PYTHONPATH": str(path), "COLUMNS": "80"},
                    capture_output=True,
                    encoding="utf-8",
                    check=False,
                )
                for path, where in ((before / "src", before), (root / "src", folder))
            )
            assert then.returncode == now.returncode, (name, then.stderr, now.stderr)
            lost = set(facts_of(then.stdout)) - set(facts_of(now.stdout))
            assert not lost, (name, sorted(lost)[:5])


def _without_store(text: str) -> str:
    return re.sub(r'"store": ".*"', "", text)


def _body(text: str) -> str:
    return text.partition("\n")[2]
