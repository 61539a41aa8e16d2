"""The ledger of machine judges: every attempt before it is sent, every verdict, every cost.

One SQLite file of the workspace, ``judges/ledger.sqlite``. An attempt is written before the request
and settled after it; one that stays in flight was sent, and may have been paid. A verdict and the
attempt that gave it are one transaction: killing the process loses neither.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from karat.errors import InputError
from karat.tables.golden.machine_judges import (
    IN_FLIGHT,
    USABLE,
    Failure,
    JudgePair,
    LastRun,
    Spent,
    Usage,
    Verdict,
)

FILE = "judges/ledger.sqlite"
_QUIET_US = 600_000_000  # since the last request, from which a run without an end was interrupted
_STATES = (
    "SELECT state, count(*) FROM verdict WHERE rater = ? AND attempt > ? AND attempt <= ? "
    "GROUP BY state ORDER BY 2 DESC"
)
_FAILURES = (
    "SELECT state, error, count(*) FROM attempt WHERE rater = ? AND id > ? AND id <= ? "
    "AND error != '' GROUP BY state, error ORDER BY 3 DESC LIMIT 10"
)
_ACTIVE = (
    "SELECT max(coalesce(done_us, sent_us)) FROM attempt WHERE rater = ? AND id > ? AND id <= ?"
)
_TABLES = """
CREATE TABLE IF NOT EXISTS attempt (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, rater TEXT NOT NULL, probe TEXT NOT NULL,
    sent_us INTEGER NOT NULL, done_us INTEGER, state TEXT NOT NULL, http INTEGER,
    input INTEGER, cached INTEGER, output INTEGER, reasoning INTEGER,
    cost_nano INTEGER, billed INTEGER NOT NULL DEFAULT 1,
    model TEXT, fingerprint TEXT, request_id TEXT, error TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS verdict (
    key TEXT NOT NULL, rater TEXT NOT NULL, query_id TEXT NOT NULL, doc_id TEXT NOT NULL,
    probe TEXT NOT NULL, replicate INTEGER NOT NULL, state TEXT NOT NULL, grade REAL,
    reason TEXT NOT NULL, evidence TEXT NOT NULL, flagged INTEGER NOT NULL, error TEXT NOT NULL,
    time_us INTEGER NOT NULL, attempt INTEGER NOT NULL, model TEXT,
    PRIMARY KEY (key, query_id, doc_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY, rater TEXT NOT NULL, what TEXT NOT NULL, began_us INTEGER NOT NULL,
    ended_us INTEGER, pairs INTEGER NOT NULL, known INTEGER NOT NULL, budget_nano INTEGER,
    first INTEGER NOT NULL, last INTEGER, stopped TEXT NOT NULL DEFAULT '');
"""


class Ledger:
    """An open ledger; for one thread."""

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing
            self._db.execute("PRAGMA wal_autocheckpoint = 8000")  # pages; each waits for the disk
            self._db.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"the ledger of judges cannot be opened: {error}", file=str(self._path)
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._db.close()

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def last(self) -> int:
        """The number of the last attempt; 0 without any."""
        found = self._db.execute("SELECT max(id) FROM attempt").fetchone()[0]
        return int(found or 0)

    def begin_run(
        self, rater: str, what: str, pairs: int, known: int, budget_nano: int | None = None
    ) -> int:
        """Write a run that begins, of so many pairs, some of them known; its number."""
        row = (rater, what, time.time_ns() // 1000, pairs, known, budget_nano, self.last())
        sql = (
            "INSERT INTO run (rater, what, began_us, pairs, known, budget_nano, first) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        return int(self._db.execute(sql, row).lastrowid or 0)

    def end_run(self, run: int, stopped: str) -> None:
        sql = "UPDATE run SET ended_us = ?, last = ?, stopped = ? WHERE id = ?"
        self._db.execute(sql, (time.time_ns() // 1000, self.last(), stopped, run))

    def last_run(self, rater: str, now: int) -> LastRun | None:
        """The last run of a rater; one that has not ended is running while requests are recent."""
        sql = (
            "SELECT what, began_us, ended_us, pairs, known, budget_nano, first, "
            "coalesce(last, (SELECT max(id) FROM attempt), 0), stopped "
            "FROM run WHERE rater = ? ORDER BY id DESC LIMIT 1"
        )
        row = self._db.execute(sql, [rater]).fetchone()
        if row is None:
            return None
        what, began_us, ended_us, pairs, known, budget, first, last, stopped = row
        here = (rater, first, last)
        states = dict(self._db.execute(_STATES, here).fetchall())
        failures = self._db.execute(_FAILURES, here).fetchall()
        active = self._db.execute(_ACTIVE, here).fetchone()[0] or began_us
        state: Literal["running", "done", "stopped", "interrupted"]
        if ended_us is None:
            state = "running" if now - active < _QUIET_US else "interrupted"
        else:
            state = "stopped" if stopped else "done"
        return LastRun(
            what,
            state,
            began_us,
            ended_us or active,
            pairs,
            known,
            sum(states.values()),
            pairs - known - sum(states.values()),
            states,
            self.spent(rater, after=first, until=last),
            None if budget is None else budget / 1e9,
            stopped,
            [Failure(*each) for each in failures],
        )

    def begin(self, key: str, rater: str, pair: JudgePair) -> int:
        """Write an attempt that is about to be sent; its number."""
        row = (key, rater, pair.probe, time.time_ns() // 1000, IN_FLIGHT)
        sql = "INSERT INTO attempt (key, rater, probe, sent_us, state) VALUES (?, ?, ?, ?, ?)"
        return int(self._db.execute(sql, row).lastrowid or 0)

    def settle(
        self,
        attempt: int,
        state: str,
        *,
        usage: Usage,
        cost_nano: int | None,
        billed: bool = True,
        reply: Any = None,
        error: str = "",
        final: tuple[str, str, JudgePair, int, Verdict] | None = None,
    ) -> None:
        """Write what came of an attempt.

        Args:
            billed: Whether it may have been paid.
            reply: With ``http``, ``model``, ``fingerprint`` and ``request_id``, as far as known.
            final: Key, rater, pair, replicate and the pair's verdict, if this attempt decides it.
        """
        now = time.time_ns() // 1000
        known = [getattr(reply, n, None) for n in ("http", "model", "fingerprint", "request_id")]
        with self._at_once():
            self._db.execute(
                "UPDATE attempt SET done_us = ?, state = ?, input = ?, cached = ?, output = ?, "
                "reasoning = ?, cost_nano = ?, billed = ?, error = ?, http = ?, model = ?, "
                "fingerprint = ?, request_id = ? WHERE id = ?",
                (
                    *(now, state, usage.input, usage.cached, usage.output, usage.reasoning),
                    *(cost_nano, int(billed), error, *known, attempt),
                ),
            )
            if final is not None:
                key, rater, pair, replicate, verdict = final
                self._db.execute(
                    "INSERT OR REPLACE INTO verdict VALUES "
                    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(key, rater, pair.query_id, pair.doc_id, pair.probe, replicate),
                        *(verdict.state, verdict.grade, verdict.reason, verdict.evidence),
                        *(int(verdict.flagged), verdict.error, now, attempt, known[1]),
                    ),
                )

    def known(self, keys: Sequence[str]) -> dict[str, tuple[Verdict, str | None]]:
        """Verdicts that need not be asked for again, with the model that gave them."""
        sql = (
            "SELECT key, state, grade, reason, evidence, flagged, error, model FROM verdict "
            "WHERE key IN (SELECT value FROM json_each(?))"
        )
        return {
            key: (Verdict(state, grade, reason, evidence, bool(flagged), error), model)
            for key, state, grade, reason, evidence, flagged, error, model in self._db.execute(
                sql, [json.dumps(list(keys))]
            )
            if state in USABLE
        }

    def answered(self, numbers: Sequence[str]) -> set[str]:
        """Those of the numbers of requests at the API whose answers are in the ledger."""
        sql = "SELECT request_id FROM attempt WHERE request_id IN (SELECT value FROM json_each(?))"
        return {row[0] for row in self._db.execute(sql, [json.dumps(list(numbers))])}

    def name(self, pairs: Sequence[tuple[str, JudgePair]]) -> None:
        """Let verdicts also count for pairs with the same texts under other ids."""
        sql = (
            "INSERT OR IGNORE INTO verdict SELECT key, rater, ?2, ?3, probe, replicate, state, "
            "grade, reason, evidence, flagged, error, time_us, attempt, model FROM verdict "
            "WHERE key = ?1 LIMIT 1"
        )
        with self._at_once():
            self._db.executemany(sql, [(key, pair.query_id, pair.doc_id) for key, pair in pairs])

    def spent(
        self,
        rater: str | None = None,
        after: int = 0,
        keys: Sequence[str] | None = None,
        until: int | None = None,
    ) -> Spent:
        """Attempts and costs: of one rater or all, between attempts, and of some keys or all."""
        sql = (
            "SELECT count(*), "
            "coalesce(sum(state = 'in_flight' OR (state = 'transport_failed' AND billed)), 0), "
            "coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cost_nano), 0), "
            "coalesce(sum(billed AND cost_nano IS NULL), 0) FROM attempt "
            "WHERE id > ?1 AND (?2 IS NULL OR rater = ?2) "
            "AND (?3 IS NULL OR key IN (SELECT value FROM json_each(?3))) "
            "AND (?4 IS NULL OR id <= ?4)"
        )
        chosen = None if keys is None else json.dumps(list(keys))
        return Spent(*map(int, self._db.execute(sql, (after, rater, chosen, until)).fetchone()))

    def replicate(self, rater: str) -> int:
        """The highest replicate that a rater was asked for."""
        sql = "SELECT max(replicate) FROM verdict WHERE rater = ?"
        return int(self._db.execute(sql, [rater]).fetchone()[0] or 0)

    def price(self, rater: str) -> float | None:
        """Dollars of a graded pair, failed requests included; None if no cost is known."""
        sql = "SELECT sum(cost_nano) / 1e9 FROM attempt WHERE rater = ? AND probe = ''"
        dollars, graded = self._db.execute(sql, [rater]).fetchone()[0], self.graded().get(rater)
        return None if dollars is None or not graded else float(dollars) / graded

    def grades(self, rater: str) -> list[tuple[str, str, float]]:
        """Query, document and grade of what a rater graded."""
        sql = (
            "SELECT query_id, doc_id, grade FROM verdict WHERE rater = ? AND probe = '' "
            "AND replicate = 0 AND state = 'ok' ORDER BY query_id, doc_id"
        )
        return self._db.execute(sql, [rater]).fetchall()

    def graded(self) -> dict[str, int]:
        """How many pairs each rater graded."""
        sql = (
            "SELECT rater, count(*) FROM verdict "
            "WHERE probe = '' AND replicate = 0 AND state = 'ok' GROUP BY rater"
        )
        return dict(self._db.execute(sql).fetchall())
