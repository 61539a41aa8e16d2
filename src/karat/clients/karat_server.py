"""A karat that is served, from Python: methods for what its API does."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote

import polars as pl

from karat.clients._server_tables import SCHEMAS, packed_pairs, packed_run, run_of, table
from karat.clients.calls import Calls, pieces, save, sent, text_of
from karat.errors import KaratError, UsageError
from karat.tables import Pairs, Qrels, Run

Texts = str | Sequence[str]
Name = int | str
"""A kept run: its number, or its name (the newest of that name)."""


class Client:
    """A karat that is served.

    Every method is one route of the API: the same numbers as on the command line, and the same
    errors. Requests that change nothing are tried again where the server does not answer.

    Args:
        url: Where it is served, as ``https://karat.example.org``, a path of a proxy included;
            the environment's ``KARAT_URL`` if None.
        token: A token of the account page; ``KARAT_TOKEN`` if None.
        timeout: Seconds without a sign of life after which it is given up.
        retries: How often a request that changes nothing is sent again.
        sleep: Waits so many seconds.

    Raises:
        UsageError: no such address; by every method: what was asked is wrong, or not allowed.
        InputError: by methods, that the data is wrong.
        KaratError: by methods, that the server does not answer, or cannot do it now.
        MissingExtra: httpx2 is not installed.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._calls = Calls(url, token, timeout=timeout, retries=retries, sleep=sleep)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._calls.url}>"

    def close(self) -> None:
        """Close its connections."""
        self._calls.close()

    def me(self) -> dict[str, Any]:
        """Who the token is of."""
        return self._dict("/me")

    def golden_sets(self) -> list[dict[str, Any]]:
        """The golden sets there are."""
        return self._calls.rows("/golden")

    def status(self, golden: str) -> dict[str, Any]:
        """Where a golden set stands, as `karat golden status --format json`."""
        return self._dict(_of(golden, "status"))

    def queries(self, golden: str, edition: str | None = None, **where: Any) -> pl.DataFrame:
        """Queries with attributes and weights, of an edition or as they stand: for `queries=`."""
        return self._table("queries", golden, edition=edition, **where)

    def query(self, golden: str, query_id: str) -> dict[str, Any]:
        """One query with its documents."""
        return self._dict(_of(golden, "queries", query_id))

    def documents(self, golden: str, **where: Any) -> pl.DataFrame:
        """The documents of a golden set."""
        return self._table("documents", golden, **where)

    def pairs(self, golden: str, **where: Any) -> pl.DataFrame:
        """Pairs that are queued or judged; `state="disagreement"` chooses among them."""
        return self._table("pairs", golden, **where)

    def pair(self, golden: str, query_id: str, doc_id: str) -> dict[str, Any]:
        """One pair, and everything that was ever said of it."""
        return self._dict(_of(golden, "pair"), query=query_id, document=doc_id)

    def judgments(self, golden: str, **where: Any) -> pl.DataFrame:
        """The judgments that count, the newest first; `rater="ann"` chooses among them."""
        return self._table("judgments", golden, **where)

    def grades(self, golden: str, edition: str | None = None) -> pl.DataFrame:
        """The grades that count, with the rule that made them."""
        return self._table("grades", golden, edition=edition)

    def qrels(self, golden: str, edition: str | None = None) -> Qrels:
        """The grades that count, on the golden set's scale: to evaluate with, beside `queries`."""
        found = self.grades(golden, edition).select("query_id", "doc_id", "grade")
        named = {row["name"]: row for row in self.golden_sets()}
        qrels = Qrels.from_frame(found, f"golden set {golden}, {edition or 'now'}")
        return qrels.on_scale(tuple(named[golden]["scale"])) if golden in named else qrels

    def agreement(self, golden: str, by: str | None = None) -> dict[str, Any]:
        """How far raters agree, as `karat golden agreement --format json`."""
        return self._dict(_of(golden, "agreement"), by=by)

    def disagreements(
        self, golden: str, between: Literal["raters", "import"] | None = None
    ) -> pl.DataFrame:
        """Pairs whose grades are far apart, and that nobody has settled."""
        return self._table("disagreements", golden, between=between)

    def queue_disagreements(
        self,
        golden: str,
        pairs: Sequence[tuple[str, str]] | None = None,
        between: Literal["raters", "import"] = "raters",
    ) -> int:
        """Put disagreements before an adjudicator, all if none are named; how many are new."""
        chosen = None if pairs is None else [list(pair) for pair in pairs]
        said = {"pairs": chosen, "between": between}
        return int(self._calls.post(_of(golden, "disagreements", "queue"), said)["queued"])

    def stale(self, golden: str) -> dict[str, Any]:
        """Judgments of documents that changed, as `karat golden stale --format json`."""
        return self._dict(_of(golden, "stale"))

    def coverage(
        self, golden: str, runs: Sequence[Name], *, edition: str | None = None, k: int = 10
    ) -> dict[str, Any]:
        """How much of the top k of kept runs is judged, as `karat golden coverage`."""
        return self._dict(_of(golden, "coverage"), run=list(runs), edition=edition, k=k)

    def editions(self, golden: str) -> list[dict[str, Any]]:
        """The editions, the first first."""
        return self._calls.rows(_of(golden, "editions"))

    def edition(self, golden: str, name: str) -> dict[str, Any]:
        """What is known of one edition."""
        return self._dict(_of(golden, "editions", name))

    def freeze(self, golden: str, name: str) -> dict[str, Any]:
        """Make an edition, as `karat golden freeze --format json`."""
        return _dict(self._calls.post(_of(golden, "editions"), {"name": name}))

    def diff(
        self, golden: str, old: str, new: str = "now", *, by: str | None = None
    ) -> dict[str, Any]:
        """What changed from one edition to another, as `karat golden diff --format json`."""
        return self._dict(_of(golden, "diff"), old=old, new=new, by=by)

    def choose(
        self, golden: str, log: str | Path, size: int = 100, **settings: Any
    ) -> dict[str, Any]:
        """Draw queries from a log: `band`, `quota`, `hard` (lists), `mask`, `text`, `count`."""
        with sent(log) as (name, stream):
            told = {"name": name, "size": size, **settings}
            return _dict(self._calls.upload(_of(golden, "choose"), pieces(stream), **told))

    def pool(self, golden: str, runs: Sequence[Name], **settings: Any) -> dict[str, Any]:
        """Put what kept runs return into the queue: `method`, `k`, `p`, `budget`, `per_query`."""
        return _dict(self._calls.post(_of(golden, "pool"), {"runs": list(runs), **settings}))

    def queue(self, golden: str, pairs: str | Path | Pairs) -> dict[str, Any]:
        """Put pairs into the queue: a file, or those of a comparison's `to_judge()`."""
        given = pairs if isinstance(pairs, str | Path) else packed_pairs(pairs)
        with sent(given) as (name, stream):
            return _dict(self._calls.upload(_of(golden, "queue"), pieces(stream), name=name))

    def import_file(
        self,
        golden: str,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - as the command line has it
        rater: str | None = None,
        source: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Import a file, all of it or nothing: what came in, was kept, assumed and lost."""
        with sent(path) as (name, stream):
            told = {"name": name, "format": format, "rater": rater, "source": source}
            return _dict(self._calls.upload(_of(golden, "import"), pieces(stream), **told))

    def export(
        self,
        golden: str,
        path: str | Path,
        *,
        format: str = "beir",  # noqa: A002 - as the command line has it
        edition: str | None = None,
        each_rater: bool = False,
        runs: Sequence[Name] = (),
    ) -> dict[str, Any]:
        """Write a golden set or an edition to a file (a BEIR folder as ZIP); what it holds."""
        asked: dict[str, Any] = {"format": format, "edition": edition, "run": list(runs)}
        asked |= {"each_rater": each_rater}
        with self._calls.download(_of(golden, "export"), **asked) as answer:
            save(answer, Path(path))
            told = json.loads(answer.headers.get("x-karat-notes", "{}"))
        return {**told, "file": str(path)}

    def to_judge(self) -> list[dict[str, Any]]:
        """What waits for whoever the token is of, by golden set."""
        return self._calls.rows("/judge")

    def progress(self, golden: str, *, adjudicate: bool = False) -> dict[str, Any]:
        """How far the rater is."""
        return self._dict(_judge(golden, "progress"), adjudicate=adjudicate)

    def claim(self, golden: str, *, adjudicate: bool = False) -> dict[str, Any] | None:
        """The next card to judge; None if nothing waits. The same again until it is dealt with."""
        card = self._calls.post(_judge(golden, "claim"), {"adjudicate": adjudicate})["card"]
        return None if card is None else _dict(card)

    def submit(
        self,
        golden: str,
        card: dict[str, Any],
        grade: float | None = None,
        *,
        cannot: str = "",
        reason: str = "",
        seconds: float | None = None,
        adjudicate: bool = False,
    ) -> int:
        """Judge a card: a grade, or why there can be none; the number of the judgment."""
        said = {"ticket": card["ticket"]}
        said |= {"grade": grade, "cannot": cannot, "reason": reason, "seconds": seconds}
        said |= {"adjudicate": adjudicate}
        return int(self._calls.post(_judge(golden, "submit"), said)["judgment"])

    def later(self, golden: str, card: dict[str, Any], *, adjudicate: bool = False) -> None:
        """Put a card off for an hour."""
        said = {"ticket": card["ticket"], "adjudicate": adjudicate}
        self._calls.post(_judge(golden, "later"), said)

    def undo(
        self, golden: str, newest: int | None = None, *, adjudicate: bool = False
    ) -> dict[str, Any]:
        """Take the newest judgment back, or none if another is the newest by now."""
        said = {"newest": newest, "adjudicate": adjudicate}
        return _dict(self._calls.post(_judge(golden, "undo"), said))

    def runs(self, golden: str | None = None) -> list[dict[str, Any]]:
        """The runs that are kept, the newest first."""
        return self._calls.rows("/runs", golden=golden)

    def run(self, run: Name, *, golden: str | None = None) -> dict[str, Any]:
        """What is known of one run."""
        return self._dict(_run(run), golden=golden)

    def upload_run(
        self, run: str | Path | Run, name: str | None = None, *, golden: str | None = None
    ) -> dict[str, Any]:
        """Keep a run: a file, or a Run; as it is kept, and `said` if its content was already."""
        if isinstance(run, Run):
            name = name or run.name
        with sent(packed_run(run) if isinstance(run, Run) else run) as (called, stream):
            told = {"name": called, "run": name, "golden": golden}
            return _dict(self._calls.upload("/runs", pieces(stream), **told))

    def remove_run(self, run: Name | Mapping[str, Any], *, golden: str | None = None) -> None:
        """Remove a run with all its names and its file; refused while a comparison needs it.

        By number or name, or as `runs` or `upload_run` told of it: another of its number stays.
        """
        named, known = _known(run, "sha256")
        self._calls.delete(_run(named), golden=golden, **known)

    def download_run(self, run: Name, *, golden: str | None = None) -> Run:
        """A run that is kept, with how it answered each query."""
        found = self.run(run, golden=golden)
        with self._calls.download(_run(found["id"], "file"), format="parquet") as answer:
            return run_of(pl.read_parquet(io.BytesIO(answer.read())), found["name"])

    def explain(
        self,
        run: Name,
        query_id: str,
        measure: str = "nDCG@10",
        edition: str | None = None,
        *,
        golden: str | None = None,
    ) -> dict[str, Any]:
        """Which documents make a value, as `karat explain --format json`."""
        asked = {"query_id": query_id, "measure": measure, "edition": edition, "golden": golden}
        return self._dict(_run(run, "explain"), **asked)

    def evaluate(
        self, runs: Name | Sequence[Name], measures: str | Sequence[str] = (), **settings: Any
    ) -> dict[str, Any]:
        """Evaluate kept runs, as `karat evaluate --format json`; `edition=`, `by=` and so on."""
        said = {"runs": _listed(runs), "measures": _listed(measures), **_plain(settings)}
        return _dict(self._calls.post("/evaluate", said, safe=True))

    def gate(
        self, policy: str | Path, candidate: Name, baseline: Name | None = None, **settings: Any
    ) -> dict[str, Any]:
        """Hold a kept run against a policy (a file, or its text), as `karat gate --format json`."""
        text = policy if isinstance(policy, str) and "\n" in policy else text_of(policy)
        said = {"policy": text, "candidate": candidate, "baseline": baseline, **settings}
        return _dict(self._calls.post("/gate", said, safe=True))

    def compare(
        self,
        baseline: Name,
        candidates: Name | Sequence[Name],
        measures: str | Sequence[str] = (),
        *,
        wait: float = 600.0,
        **settings: Any,
    ) -> dict[str, Any]:
        """Have kept runs compared, wait for it, and get what `karat compare --format json` says.

        The comparison is kept; `by`, `margin`, `edition`, `name` and `golden` are as on its page.
        """
        said = {"baseline": baseline, "candidates": _listed(candidates)}
        said |= {"measures": _listed(measures), **_plain(settings)}
        made = self._calls.post("/comparisons", said)
        until = time.monotonic() + wait
        while made["state"] not in {"done", "failed"}:
            if time.monotonic() > until:
                raise KaratError(f"comparison {made['id']} is not done after {wait:g} seconds")
            made = self.comparison(made["id"], wait=5.0)
            self._sleep(0.1)
        if made["state"] == "failed":
            raise UsageError(made["error"] or "the comparison failed")
        return self.comparison_result(made["id"])

    def comparisons(self, golden: str | None = None) -> list[dict[str, Any]]:
        """The comparisons that are kept."""
        return self._calls.rows("/comparisons", golden=golden)

    def comparison(self, comparison_id: int, wait: float = 0.0) -> dict[str, Any]:
        """What is known of a comparison; waits so many seconds for it, 30 at most."""
        return self._dict(f"/comparisons/{int(comparison_id)}", wait=wait)

    def comparison_result(self, comparison_id: int) -> dict[str, Any]:
        """What a comparison says, as `karat compare --format json`."""
        return self._dict(f"/comparisons/{int(comparison_id)}/result")

    def comparison_queries(self, comparison_id: int, **where: Any) -> pl.DataFrame:
        """The queries of a comparison, the largest contribution first."""
        rows = self._calls.rows(f"/comparisons/{int(comparison_id)}/queries", **where)
        return table(rows, SCHEMAS["comparison"])

    def compare_again(self, comparison_id: int) -> dict[str, Any]:
        """Compute a comparison again, with the judgments of now."""
        return _dict(self._calls.post(f"/comparisons/{int(comparison_id)}/again", {}))

    def remove_comparison(self, comparison: int | Mapping[str, Any]) -> None:
        """Remove a comparison with its numbers; its runs stay.

        By its number, or as `comparisons` told of it: another of its number stays.
        """
        number, known = _known(comparison, "created_us")
        self._calls.delete(f"/comparisons/{int(number)}", **known)

    def queue_comparison(self, comparison_id: int) -> dict[str, Any]:
        """Put the pairs whose grades could turn its sign into the queue."""
        return _dict(self._calls.post(f"/comparisons/{int(comparison_id)}/queue", {}))

    def trends(self) -> list[dict[str, Any]]:
        """The histories that the workspace names."""
        return self._calls.rows("/trends")

    def trend(
        self,
        history: str,
        measures: str | Sequence[str] = (),
        *,
        slice: str | None = None,  # noqa: A002 - as the command line has it
        run: str | None = None,
        series: str | None = None,
        last: int | None = None,
    ) -> dict[str, Any]:
        """Each measure over time, as `karat trend --format json`."""
        asked: dict[str, Any] = {"slice": slice, "run": run, "series": series, "last": last}
        return self._dict(f"/trends/{quote(history, safe='')}", measure=_listed(measures), **asked)

    def measures(self) -> list[dict[str, Any]]:
        """The catalogue of measures."""
        return self._calls.rows("/measures")

    def measure(self, name: str) -> dict[str, Any]:
        """One measure, in any spelling."""
        return self._dict(f"/measures/{quote(name, safe='')}")

    def plan(self, difference: float = 0.05, **settings: Any) -> dict[str, Any]:
        """How many queries show a difference, and what they cost, as `karat golden plan`."""
        return self._dict("/plan", difference=difference, **settings)

    def online_status(self) -> dict[str, Any]:
        """What the log of events holds, as `karat online status --format json`."""
        return self._online("status")

    def online_metrics(self) -> list[dict[str, Any]]:
        """The catalogue of online metrics."""
        return self._calls.rows("/online/metrics")

    def online_metric(self, name: str) -> dict[str, Any]:
        """One online metric, in any spelling."""
        return self._online(f"metrics/{quote(name, safe='')}")

    def online_evaluate(
        self,
        metrics: Texts = (),
        *,
        by: Texts = (),
        first: str | None = None,
        last: str | None = None,
    ) -> dict[str, Any]:
        """Online metrics of some days, as `karat online evaluate --format json`.

        Args:
            metrics: Names; the usual ones if empty.
            by: What to slice by, several at once as ``day,arm``; ``golden:NAME`` is an attribute
                of the golden set's queries.
            first: The first day, as ``2026-11-01``; the last four weeks if nothing is said.
            last: The last day, itself included.
        """
        asked = {"metric": _texts(metrics), "by": _texts(by), **_days(first, last)}
        return self._online("evaluate", **asked)

    def online_queries(
        self,
        *,
        by: str | None = None,
        first: str | None = None,
        last: str | None = None,
        **where: Any,
    ) -> pl.DataFrame:
        """The queries that lose most searches, the worst first; filtered by column."""
        rows = self._calls.rows("/online/queries", by=by, **_days(first, last), **where)
        return pl.DataFrame(rows, infer_schema_length=None)

    def online_watch(
        self,
        *,
        until: str | None = None,
        window: str = "1d",
        history: str | None = None,
        metrics: Texts = (),
        by: Texts = (),
        margins: Texts = (),
    ) -> dict[str, Any]:
        """The latest window beside its own history, as `karat online watch --format json`.

        Args:
            until: The day, or the hour, that the window ends with; None: the latest that is over.
            window: ``1d``, ``7d``, or hours that divide a day, as ``6h``.
            history: How far back it is compared, as ``56d``, which is the usual.
            metrics: Names; the usual ones if empty.
            by: What to slice by, as in ``online_evaluate``.
            margins: Changes that matter to nobody, as ``5%`` or ``CTR=0.01``.
        """
        asked = {"metric": _texts(metrics), "by": _texts(by), "margin": _texts(margins)}
        return self._online("watch", until=until, window=window, history=history, **asked)

    def online_against(
        self,
        run: int | str,
        *,
        measure: str | None = None,
        metric: str | None = None,
        by: str | None = None,
        first: str | None = None,
        last: str | None = None,
    ) -> dict[str, Any]:
        """What judges say of a kept run beside what users did: `karat online against`."""
        asked = {"measure": measure, "metric": metric, "by": by, **_days(first, last)}
        return self._online("against", run=str(run), **asked)

    def online_rows(
        self,
        metric: str | None = None,
        *,
        table: Literal["searches", "clicks", "sessions"] | None = None,
        counts: Literal["", "yes", "no"] = "",
        slices: Texts = (),
        first: str | None = None,
        last: str | None = None,
        most: int = 1_000,
    ) -> pl.DataFrame:
        """The rows behind a figure, the newest first; users by pseudonyms.

        Args:
            metric: Whose; None for all of a table.
            table: Of searches, clicks or sessions, without a metric.
            counts: ``yes`` those that its numerator counts, ``no`` those that it could.
            slices: As ``arm=b``.
            first: The first day.
            last: The last day.
            most: Rows, at most 1,000.
        """
        asked = {"metric": metric, "table": table, "slice": _texts(slices), "per": most}
        found = self._online("rows", **asked, counts=counts or None, **_days(first, last))
        return pl.DataFrame(found["items"], infer_schema_length=None)

    def _online(self, what: str, **asked: Any) -> dict[str, Any]:
        return dict(self._calls.get(f"/online/{what}", **asked))

    def _dict(self, path: str, **asked: Any) -> dict[str, Any]:
        return _dict(self._calls.get(path, **asked))

    def _table(self, what: str, golden: str, **asked: Any) -> pl.DataFrame:
        return table(self._calls.rows(_of(golden, what), **asked), SCHEMAS[what])


def _dict(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise KaratError("the server answered, and not as this karat expects")
    return found


def _of(golden: str, *parts: str) -> str:
    return "/golden/" + "/".join(quote(part, safe="") for part in (golden, *parts))


def _run(run: Name, *parts: str) -> str:
    return "/".join(["/runs", quote(str(run), safe=""), *parts])


def _judge(golden: str, part: str) -> str:
    return f"/judge/{quote(golden, safe='')}/{part}"


def _known(what: Name | Mapping[str, Any], by: str) -> tuple[Name, dict[str, Any]]:
    """The number or name of something, and what else it is known by."""
    return (what["id"], {by: what[by]}) if isinstance(what, Mapping) else (what, {})


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, int | str) else list(given)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: _listed(v) if name in {"by", "outcomes"} else v for name, v in settings.items()}


def _texts(given: Texts) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _days(first: str | None, last: str | None) -> dict[str, str | None]:
    return {"from": first, "to": last}
