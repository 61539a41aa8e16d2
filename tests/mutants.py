"""Sound files of every kind that karat reads, damaged at random, through every entry point.

A mutant is a sound file with some bytes changed, by a seed. Every command that reads such a file,
and every address that takes it as an upload, has to end in one of the documented ways: an exit code
from 0 to 3, a status below 500, no traceback, and nothing half-written.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.mutations import mutate
from tests.sound_files import MADE, write_files

NOW = 1_800_000_000_000_000
Post = Callable[[str, str, bytes], dict[str, Any]]
DAMAGED = "*"
"""Stands for the damaged file in the lines of a seed."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A sound file and what reads it.

    Attributes:
        reader: What kind of file it is.
        path: Where it lies in the world.
        lines: Commands that read it.
        posts: Addresses that take it as the body of a POST; ``gate`` sends it as a policy.
        refusing: Those that refuse it, sound as it is; they are tried with it all the same.
    """

    reader: str
    path: str
    lines: tuple[str, ...]
    posts: tuple[str, ...] = ()
    refusing: tuple[str, ...] = ()


_LINT = ("lint * -f json", "lint * q.qrels", "lint r.trec * -f github")
_RUNS = (
    "evaluate q.qrels * -m nDCG@3 -f json",
    "compare q.qrels r.trec * -m nDCG@3 -f json",
    "gate q.qrels r.trec * --policy p.toml -f json",
    "explain q.qrels * q1",
    "fuse r.trec * -o fused.trec",
    "golden pool * -w shop",
    *_LINT,
)
_QRELS = (
    "evaluate * r.trec -m nDCG@3",
    "compare * r.trec r2.trec -m nDCG@3 -f md",
    "gate * r.trec r2.trec --policy p.toml -f junit",
    "explain * r.trec q1 -f json",
    "golden import * -w shop",
    *_LINT,
)
_QUERIES = (
    "evaluate q.qrels r.trec --queries * -m nDCG@3",
    "golden import * -w shop --format queries",
    *_LINT,
)
_UPLOAD = ("/api/golden/shop/import",)
_IMPORT = ("golden import * -w shop", *_UPLOAD)
_RUN_UPLOAD = ("/api/runs",)
_LOG = ("golden choose * -w shop --size 9",)
_EVENTS = ("online import * --events ev -f json", "online import * --events ev --partial --check")
_GATES = (
    "gate q.qrels r.trec r2.trec --policy * -f json",
    "gate q.qrels r.trec r.trec --policy * -f md",
)

SEEDS = (
    Seed("TREC run", "r2.trec", _RUNS, _RUN_UPLOAD),
    Seed("TREC qrels", "q2.qrels", _QRELS, _UPLOAD),
    Seed("BEIR folder: qrels", "beir/qrels/test.tsv",
         ("evaluate beir r.trec -m AP", "lint beir -f json", "golden import beir -w shop")),
    Seed("BEIR folder: queries", "beir/queries.jsonl",
         ("evaluate beir r.trec -m AP --by kind", "lint beir", "golden import beir -w shop")),
    Seed("BEIR folder: documents", "beir/corpus.jsonl",
         ("evaluate beir r.trec -m AP --documents *", "lint beir", "golden import beir -w shop")),
    Seed("MS MARCO run", "r.msmarco", _RUNS, _RUN_UPLOAD),
    Seed("MS MARCO queries", "queries.msmarco.tsv", _QUERIES, _UPLOAD),
    Seed("CSV run", "r.csv", _RUNS, _RUN_UPLOAD),
    Seed("TSV run", "r.tsv", _RUNS, _RUN_UPLOAD),
    Seed("CSV qrels", "q.csv", _QRELS, _UPLOAD),
    Seed("CSV queries", "queries.csv", _QUERIES, _UPLOAD),
    Seed("JSONL run", "r.jsonl", _RUNS, _RUN_UPLOAD),
    Seed("JSONL qrels", "q.jsonl", _QRELS, _UPLOAD, _IMPORT),
    Seed("JSONL queries", "queries.jsonl", _QUERIES, _UPLOAD),
    Seed("nested JSON run", "r.json", _RUNS, _RUN_UPLOAD),
    Seed("nested JSON qrels", "q.json", _QRELS, _UPLOAD, _IMPORT),
    Seed("Parquet run", "r.parquet", _RUNS, _RUN_UPLOAD),
    Seed("Parquet qrels", "q.parquet", _QRELS, _UPLOAD, _IMPORT),
    Seed("Parquet queries", "queries.parquet", _QUERIES, _UPLOAD),
    Seed("golden JSON", "golden.json", (*_QRELS, "evaluate * r.trec --by kind -f csv"), _UPLOAD,
         _IMPORT),
    Seed("policy", "p2.toml", _GATES, ("gate",)),
    Seed("karat.toml", "shop/karat.toml",
         ("golden status -w shop", "golden import q.csv -w shop", "golden editions -w shop")),
    Seed("history", "history.jsonl",
         ("trend * -f json", "trend * --fail-on-drift",
          "evaluate q.qrels r.trec -m RR --history *",
          "gate q.qrels r.trec r2.trec --policy p.toml --history *")),
    Seed("baseline", "baseline.json", ("gate q.qrels * r2.trec --policy p.toml -f json", *_LINT)),
    Seed("certificate", "certificate.json", ("reader certificate *", *_LINT)),
    Seed("event log: JSONL", "events.jsonl", _EVENTS),
    Seed("event log: CSV", "events.csv", _EVENTS),
    Seed("event log: Parquet", "events.parquet", _EVENTS),
    Seed("event log: UBI", "ubi.ndjson", _EVENTS),
    Seed("event mapping", "mapping.toml", ("online import own.csv --mapping * --events ev",)),
    Seed("query log: CSV", "log.csv", _LOG, ("/api/golden/shop/choose?size=9",)),
    Seed("query log: JSONL", "log.jsonl", _LOG, ("/api/golden/shop/choose?size=9",)),
    Seed("query log: plain", "log.txt", _LOG, ("/api/golden/shop/choose?size=9",)),
    Seed("query log: uniq -c", "log.uniq", _LOG, ("/api/golden/shop/choose?size=9",)),
    Seed("query log: Parquet", "log.parquet", _LOG, ("/api/golden/shop/choose?size=9",)),
    Seed("pairs", "pairs.csv", ("golden queue * -w shop",), ("/api/golden/shop/queue",)),
    Seed("backup", "backup.zip", ("restore * back",)),
)  # fmt: skip
"""All but the exchange formats, of which ``World`` makes what karat can write."""


class World:
    """A folder with a sound file of every kind, and a workspace; made once, damaged and restored.

    Args:
        folder: Where; it must not exist.
        web: Whether uploads are tried too.
    """

    def __init__(self, folder: Path, *, web: bool = True) -> None:
        self.sound, self.folder = folder.with_name(f"{folder.name}-sound"), folder
        self.sound.mkdir(parents=True)
        with contextlib.chdir(self.sound):
            write_files()
            for line in MADE:
                code, err = typed(Path.cwd(), line)
                assert code in (0, 1, 3), (line, err)
                assert "no certificate" not in err, err
            self.seeds = (*SEEDS, *_write_exchanges())
        self._data = {seed.path: (self.sound / seed.path).read_bytes() for seed in self.seeds}
        shutil.copytree(self.sound, folder)
        self._held = contextlib.ExitStack()
        self._post: Post | None = None
        if web:
            held = _uploads(folder.with_name(f"{folder.name}-web"), self.sound)
            self._post = self._held.enter_context(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def try_one(self, number: int, *, every: bool = True) -> list[dict[str, Any]]:
        """What entry points did with the file that the number of a mutant damages.

        Args:
            number: Of the mutant; those that follow each other are of different kinds.
            every: Try every entry point; else one of them.
        """
        seed, rng = self.seeds[number % len(self.seeds)], random.Random(number)
        data, how = mutate(self._data[seed.path], rng)
        lines, posts = seed.lines, seed.posts if self._post is not None else ()
        if not every:
            one = rng.choice((*lines, *posts))
            lines, posts = ((one,), ()) if one in lines else ((), (one,))
        told = self._tried(seed, data, lines, posts)
        return [{"number": number, "reader": seed.reader, "how": how, **each} for each in told]

    def try_sound(self, seed: Seed) -> list[dict[str, Any]]:
        """What the first command and the addresses that take the file did with it as it is."""
        posts: Sequence[str] = seed.posts if self._post is not None else ()
        takes = [line for line in seed.lines if line not in seed.refusing]
        posts = [post for post in posts if post not in seed.refusing]
        return self._tried(seed, self._data[seed.path], takes[:1], posts)

    def _tried(
        self, seed: Seed, data: bytes, lines: Sequence[str], posts: Sequence[str]
    ) -> list[dict[str, Any]]:
        (self.folder / seed.path).write_bytes(data)
        told = []
        try:
            for line in lines:
                told.append(self._typed(line.replace(DAMAGED, seed.path)))
            for post in posts:
                assert self._post is not None
                told.append(self._post(post, seed.path, data))
        finally:
            (self.folder / seed.path).write_bytes(self._data[seed.path])
            self._restore(lines)
        return told

    def _restore(self, lines: Sequence[str]) -> None:
        if any("shop" in line for line in lines):
            shutil.rmtree(self.folder / "shop")
            shutil.copytree(self.sound / "shop", self.folder / "shop")

    def _typed(self, line: str) -> dict[str, Any]:
        before = _listing(self.folder)
        code, err = typed(self.folder, line)
        new = _listing(self.folder) - before
        # What is refused leaves nothing; what is done leaves what was asked for, whole.
        left = [path for path in new if ".part" in path or (code in (2, 4) and "shop/" not in path)]
        wrong = _wrong(code, err) or (f"left {sorted(left)}" if left else None)
        for path in {*new, "ev"}:
            if "shop/" not in path:
                where = self.folder / path
                shutil.rmtree(where) if where.is_dir() else where.unlink(missing_ok=True)
        return {"entry": line, "ended": code, "wrong": wrong}


def _wrong(code: int, err: str) -> str | None:
    if "Traceback" in err or "bug in karat" in err:
        return err[-1500:]
    return None if code in (0, 1, 2, 3) else f"exit {code}: {err[-300:]}"


def typed(folder: Path, line: str) -> tuple[int, str]:
    """Run a command in this process, in a folder; its exit code and what it said of errors."""
    from karat.cli.main import main

    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    words = line.split()
    code: object = 0
    with contextlib.chdir(folder), _streams(words, out, err):
        try:
            if words[0] == "reader":
                _read(words[1], words[2])
            else:
                main()
        except SystemExit as stop:
            code = stop.code
    return code if isinstance(code, int) else 0, err.getvalue()


def _read(kind: str, path: str) -> None:
    """What only Python reads; errors are told as by the command line."""
    from karat import formats
    from karat.cli import mistakes

    try:
        getattr(formats, f"read_{kind}")(path)
    except Exception as error:  # noqa: BLE001 - as in karat.cli.main
        raise SystemExit(mistakes.say(error)) from None


@contextmanager
def _streams(words: Sequence[str], out: Any, err: Any) -> Iterator[None]:
    kept = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["karat", *words], io.StringIO("")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        sys.argv, sys.stdin = kept


def _listing(folder: Path) -> set[str]:
    """What is in a folder; of the store only what must not be left."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if "karat.db" not in path.name and path.name not in ("ev", ".lock")
    }


def _write_exchanges() -> list[Seed]:
    """A file in each format of another tool that karat can write."""
    from karat.formats.exchange.catalogue import EXCHANGES

    Path("peers").mkdir()
    seeds = []
    for name, peer in EXCHANGES.items():
        if peer.write is None or name in ("beir", "trec"):
            continue
        file = f"peers/{name}" + (".zip" if "ZIP" in peer.what and "JSON" not in peer.what else "")
        runs = " --run old" if "runs" in peer.writes else ""
        code, err = typed(Path.cwd(), f"golden export {file} --format {name}{runs} -w shop")
        assert code == 0, (name, err)
        seeds.append(
            Seed(f"exchange: {name}", file,
                 (f"golden import * --format {name} -w shop", "golden import * -w shop"),
                 (f"/api/golden/shop/import?format={name}", "/api/golden/shop/import"))
        )  # fmt: skip
    with zipfile.ZipFile("peers/qrels.zip", "w") as archive:
        archive.writestr("test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t3\nq2\td1\t1\n")
    return [*seeds, Seed("exchange: ZIP", "peers/qrels.zip", ("golden import * -w shop",), _UPLOAD)]


# --- uploads ---


@contextmanager
def _uploads(folder: Path, sound: Path) -> Iterator[Post]:
    """A function that posts a file to an app over a copy of the workspace."""
    from karat.store.sql import people
    from karat.tables.accounts.people import SCOPES_OF
    from karat.web.app import create_app
    from karat.web.framework.settings import Settings
    from karat.web.framework.state import AppState
    from karat.workflows.accounts.accounts import Accounts
    from karat.workflows.workspace.workspace import open_workspace

    shutil.copytree(sound / "shop", folder)
    settings = Settings(folder, hosts=("127.0.0.1", "localhost"))
    app = create_app(settings)
    with open_workspace(folder, now=NOW) as opened:
        accounts = Accounts(opened.store, lambda: NOW)
        app.state.site = AppState(settings, opened, accounts, lambda: NOW)
        with opened.store.begin() as c:
            person = people.add(c, "egon", "engineer", None, NOW)
        secret = accounts.make_token(person, "test", SCOPES_OF["engineer"]).text
        yield _posting(app, secret)


def _posting(app: Any, secret: str) -> Post:
    from starlette.testclient import TestClient

    client = TestClient(
        app,
        base_url="http://127.0.0.1",
        headers={"authorization": f"Bearer {secret}"},
        raise_server_exceptions=False,
    )

    def post(address: str, path: str, data: bytes) -> dict[str, Any]:
        if address == "gate":
            body = {
                "policy": data.decode("utf-8", "replace"),
                "candidate": "new",
                "baseline": "old",
            }
            answer = client.post("/api/gate", json=body)
        else:
            mark = "&" if "?" in address else "?"
            called = f"{address}{mark}name={Path(path).name}"
            answer = client.post(called, content=data)
        wrong = None if answer.status_code < 500 else answer.text[:600]
        return {"entry": f"POST {address}", "ended": answer.status_code, "wrong": wrong}

    return post


def main(start: int, stop: int) -> None:
    """Try the mutants from one number to another; each entry point's end as a line of JSON."""
    said = sys.stdout
    with (
        tempfile.TemporaryDirectory(prefix="karat-mutants-") as folder,
        World(Path(folder) / "world") as world,
    ):
        for number in range(start, stop):
            print(json.dumps({"begun": number}), file=said, flush=True)
            for told in world.try_one(number):
                print(json.dumps(told), file=said, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
