"""Python client of a karat server, with one method per API route."""

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

from karat.clients._calls import Calls, save, text_of
from karat.clients._server_tables import packed_pairs, packed_run, run_of, table
from karat.errors import KaratError, UsageError
from karat.tables import Pairs, Qrels, Run

Texts = str | Sequence[str]
Name = int | str
"""A stored run: its id, or its name (the newest run of that name)."""


class Client:
    """A client of a karat server.

    Each method calls one route of the API, with the same numbers and errors as the command line.
    Requests that change nothing are retried if the server does not respond.

    Args:
        url: URL of the server, such as ``https://karat.example.org``, including the path of a
            proxy; the environment variable ``KARAT_URL`` if None.
        token: An API token from the account page; ``KARAT_TOKEN`` if None.
        timeout: Seconds without a response or data after which a request fails.
        retries: How often a request that changes nothing is retried.
        sleep: Waits for a number of seconds.

    Raises:
        UsageError: the URL is invalid; from methods: the request is invalid or not allowed.
        InputError: from methods: the data is invalid.
        KaratError: from methods: the server does not respond, or cannot do it now.
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
        """The user of the token."""
        return self._calls.get("/me")

    def golden_sets(self) -> list[dict[str, Any]]:
        """The golden sets."""
        return self._calls.rows("/golden")

    def status(self, golden: str) -> dict[str, Any]:
        """The status of a golden set, as `karat golden status --format json`."""
        return self._calls.get(_of(golden, "status"))

    def queries(self, golden: str, edition: str | None = None, **where: Any) -> pl.DataFrame:
        """Queries with attributes and weights, current or of an edition; usable as `queries=`."""
        return self._table("queries", golden, edition=edition, **where)

    def query(self, golden: str, query_id: str) -> dict[str, Any]:
        """One query with its documents."""
        return self._calls.get(_of(golden, "queries", query_id))

    def documents(self, golden: str, **where: Any) -> pl.DataFrame:
        """The documents of a golden set."""
        return self._table("documents", golden, **where)

    def pairs(self, golden: str, **where: Any) -> pl.DataFrame:
        """Pairs that are queued or judged; filters such as `state="disagreement"`."""
        return self._table("pairs", golden, **where)

    def pair(self, golden: str, query_id: str, doc_id: str) -> dict[str, Any]:
        """One pair with its full history."""
        return self._calls.get(_of(golden, "pair"), query=query_id, document=doc_id)

    def judgments(self, golden: str, **where: Any) -> pl.DataFrame:
        """The current judgments, newest first; filters such as `rater="ann"`."""
        return self._table("judgments", golden, **where)

    def grades(self, golden: str, edition: str | None = None) -> pl.DataFrame:
        """The aggregated grades, with their aggregation method."""
        return self._table("grades", golden, edition=edition)

    def qrels(self, golden: str, edition: str | None = None) -> Qrels:
        """The aggregated grades as qrels on the golden set's scale; evaluate with `queries`."""
        grades = self.grades(golden, edition).select("query_id", "doc_id", "grade")
        scales = {row["name"]: tuple(row["scale"]) for row in self.golden_sets()}
        qrels = Qrels.from_frame(grades, f"golden set {golden}, {edition or 'now'}")
        return qrels.on_scale(scales[golden]) if golden in scales else qrels

    def agreement(self, golden: str, by: str | None = None) -> dict[str, Any]:
        """The agreement of raters, as `karat golden agreement --format json`."""
        return self._calls.get(_of(golden, "agreement"), by=by)

    def disagreements(
        self, golden: str, between: Literal["raters", "import"] | None = None
    ) -> pl.DataFrame:
        """Pairs with disagreeing grades that are not adjudicated."""
        return self._table("disagreements", golden, between=between)

    def queue_disagreements(
        self,
        golden: str,
        pairs: Sequence[tuple[str, str]] | None = None,
        between: Literal["raters", "import"] = "raters",
    ) -> int:
        """Queue disagreements for adjudication, all if `pairs` is None; the number queued."""
        path, chosen = _of(golden, "disagreements", "queue"), None if pairs is None else list(pairs)
        return int(self._calls.post(path, pairs=chosen, between=between)["queued"])

    def stale(self, golden: str) -> dict[str, Any]:
        """Judgments of documents that have changed, as `karat golden stale --format json`."""
        return self._calls.get(_of(golden, "stale"))

    def coverage(
        self, golden: str, runs: Sequence[Name], *, edition: str | None = None, k: int = 10
    ) -> dict[str, Any]:
        """The share of judged documents in the top k of stored runs, as `karat golden coverage`."""
        return self._calls.get(_of(golden, "coverage"), run=list(runs), edition=edition, k=k)

    def editions(self, golden: str) -> list[dict[str, Any]]:
        """The editions, oldest first."""
        return self._calls.rows(_of(golden, "editions"))

    def edition(self, golden: str, name: str) -> dict[str, Any]:
        """One edition."""
        return self._calls.get(_of(golden, "editions", name))

    def freeze(self, golden: str, name: str) -> dict[str, Any]:
        """Freeze an edition, as `karat golden freeze --format json`."""
        return self._calls.post(_of(golden, "editions"), name=name)

    def diff(
        self, golden: str, old: str, new: str = "now", *, by: str | None = None
    ) -> dict[str, Any]:
        """Changes between two editions, as `karat golden diff --format json`."""
        return self._calls.get(_of(golden, "diff"), old=old, new=new, by=by)

    def choose(
        self, golden: str, log: str | Path, size: int = 100, **settings: Any
    ) -> dict[str, Any]:
        """Sample queries from a log: `band`, `quota`, `hard` (lists), `mask`, `text`, `count`."""
        return self._calls.upload(_of(golden, "choose"), log, size=size, **settings)

    def pool(self, golden: str, runs: Sequence[Name], **settings: Any) -> dict[str, Any]:
        """Queue documents of stored runs for judging: `method`, `k`, `p`, `budget`, `per_query`."""
        return self._calls.post(_of(golden, "pool"), runs=list(runs), **settings)

    def queue(self, golden: str, pairs: str | Path | Pairs) -> dict[str, Any]:
        """Queue pairs for judging: a file, or a comparison's `to_judge()`."""
        content = pairs if isinstance(pairs, str | Path) else packed_pairs(pairs)
        return self._calls.upload(_of(golden, "queue"), content)

    def import_file(
        self,
        golden: str,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - as the command line has it
        rater: str | None = None,
        source: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Import a file, completely or not at all; what was imported, kept, assumed and lost."""
        params = {"format": format, "rater": rater, "source": source}
        return self._calls.upload(_of(golden, "import"), path, **params)

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
        """Export a golden set or an edition to a file (a BEIR folder as ZIP); what was exported."""
        params: dict[str, Any] = {"format": format, "edition": edition, "each_rater": each_rater}
        with self._calls.download(_of(golden, "export"), run=list(runs), **params) as response:
            save(response, Path(path))
            notes = json.loads(response.headers.get("x-karat-notes", "{}"))
        return {**notes, "file": str(path)}

    def to_judge(self) -> list[dict[str, Any]]:
        """The pairs waiting for the user of the token, by golden set."""
        return self._calls.rows("/judge")

    def progress(self, golden: str, *, adjudicate: bool = False) -> dict[str, Any]:
        """The rater's progress."""
        return self._calls.get(_judge(golden, "progress"), adjudicate=adjudicate)

    def claim(self, golden: str, *, adjudicate: bool = False) -> dict[str, Any] | None:
        """The next card to judge, or None; the same card until it is judged or postponed."""
        card: dict[str, Any] | None
        card = self._calls.post(_judge(golden, "claim"), adjudicate=adjudicate)["card"]
        return card

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
        """Judge a card: a grade, or why it cannot be judged; the id of the judgment."""
        body: dict[str, Any] = {"grade": grade, "cannot": cannot, "reason": reason}
        body |= {"seconds": seconds, "ticket": card["ticket"], "adjudicate": adjudicate}
        return int(self._calls.post(_judge(golden, "submit"), **body)["judgment"])

    def later(self, golden: str, card: dict[str, Any], *, adjudicate: bool = False) -> None:
        """Postpone a card for an hour."""
        self._calls.post(_judge(golden, "later"), ticket=card["ticket"], adjudicate=adjudicate)

    def undo(
        self, golden: str, newest: int | None = None, *, adjudicate: bool = False
    ) -> dict[str, Any]:
        """Undo the newest judgment, unless its id is no longer `newest`."""
        return self._calls.post(_judge(golden, "undo"), newest=newest, adjudicate=adjudicate)

    def runs(self, golden: str | None = None) -> list[dict[str, Any]]:
        """The stored runs, newest first."""
        return self._calls.rows("/runs", golden=golden)

    def run(self, run: Name, *, golden: str | None = None) -> dict[str, Any]:
        """One run."""
        return self._calls.get(_run(run), golden=golden)

    def upload_run(
        self, run: str | Path | Run, name: str | None = None, *, golden: str | None = None
    ) -> dict[str, Any]:
        """Store a run, a file or a Run; the stored run, with `said` if it was stored before."""
        if isinstance(run, Run):
            content = packed_run(run)
            return self._calls.upload("/runs", content, run=name or run.name, golden=golden)
        return self._calls.upload("/runs", run, run=name, golden=golden)

    def remove_run(self, run: Name | Mapping[str, Any], *, golden: str | None = None) -> None:
        """Delete a run with all its names and its file; refused while a comparison needs it.

        By id, name, or a result of `runs` or `upload_run`: then only that very run is deleted.
        """
        named, known = _known(run, "sha256")
        self._calls.delete(_run(named), golden=golden, **known)

    def download_run(self, run: Name, *, golden: str | None = None) -> Run:
        """A stored run, with the states of its queries."""
        stored = self.run(run, golden=golden)
        with self._calls.download(_run(stored["id"], "file"), format="parquet") as response:
            return run_of(pl.read_parquet(io.BytesIO(response.read())), stored["name"])

    def explain(
        self,
        run: Name,
        query_id: str,
        measure: str = "nDCG@10",
        edition: str | None = None,
        *,
        golden: str | None = None,
    ) -> dict[str, Any]:
        """The documents behind a value, as `karat explain --format json`."""
        params = {"query_id": query_id, "measure": measure, "edition": edition, "golden": golden}
        return self._calls.get(_run(run, "explain"), **params)

    def upload_trace(
        self, run: Name, trace: str | Path, *, golden: str | None = None
    ) -> dict[str, Any]:
        """Store the trace of a run, in place of an earlier one; the names of its stages."""
        return self._calls.upload(_run(run, "trace"), trace, golden=golden)

    def diagnose(
        self,
        run: Name,
        stages: Texts = (),
        *,
        baseline: Name | None = None,
        golden: str | None = None,
    ) -> dict[str, Any]:
        """Diagnose a run by the stored runs of its stages, or its trace if none are given.

        As `karat diagnose --format json`; queries that are better in the baseline fail too.
        """
        asked = {"stage": _listed(stages), "baseline": baseline, "golden": golden}
        return self._calls.get(_run(run, "diagnosis"), **asked)

    def evaluate(
        self, runs: Name | Sequence[Name], measures: str | Sequence[str] = (), **settings: Any
    ) -> dict[str, Any]:
        """Evaluate stored runs, as `karat evaluate --format json`; `edition=`, `by=` and so on."""
        body = {"runs": _listed(runs), "measures": _listed(measures), **_plain(settings)}
        return self._calls.post("/evaluate", safe=True, **body)

    def gate(
        self, policy: str | Path, candidate: Name, baseline: Name | None = None, **settings: Any
    ) -> dict[str, Any]:
        """Check a stored run against a policy (file or text), as `karat gate --format json`."""
        text = policy if isinstance(policy, str) and "\n" in policy else text_of(policy)
        body = {"policy": text, "candidate": candidate, "baseline": baseline, **settings}
        return self._calls.post("/gate", safe=True, **body)

    def compare(
        self,
        baseline: Name,
        candidates: Name | Sequence[Name],
        measures: str | Sequence[str] = (),
        *,
        wait: float = 600.0,
        **settings: Any,
    ) -> dict[str, Any]:
        """Compare stored runs, wait, and return the result as `karat compare --format json`.

        The comparison is stored; `by`, `margin`, `edition`, `name` and `golden` are as on its page.
        """
        body: dict[str, Any] = {"baseline": baseline, "candidates": _listed(candidates)}
        body |= {"measures": _listed(measures), **_plain(settings)}
        comparison = self._calls.post("/comparisons", **body)
        until = time.monotonic() + wait
        while comparison["state"] not in {"done", "failed"}:
            if time.monotonic() > until:
                raise KaratError(
                    f"comparison {comparison['id']} is not done after {wait:g} seconds"
                )
            comparison = self.comparison(comparison["id"], wait=5.0)
            self._sleep(0.1)
        if comparison["state"] == "failed":
            raise UsageError(comparison["error"] or "the comparison failed")
        return self.comparison_result(comparison["id"])

    def comparisons(self, golden: str | None = None) -> list[dict[str, Any]]:
        """The stored comparisons."""
        return self._calls.rows("/comparisons", golden=golden)

    def comparison(self, comparison_id: int, wait: float = 0.0) -> dict[str, Any]:
        """One comparison; waits up to `wait` seconds (at most 30) until it is done."""
        return self._calls.get(f"/comparisons/{int(comparison_id)}", wait=wait)

    def comparison_result(self, comparison_id: int) -> dict[str, Any]:
        """The result of a comparison, as `karat compare --format json`."""
        return self._calls.get(f"/comparisons/{int(comparison_id)}/result")

    def review(self, comparison_id: int, candidate: str | None = None) -> dict[str, Any]:
        """The design review of a comparison, as `karat review --format json`."""
        where = f"/comparisons/{int(comparison_id)}/review"
        return self._calls.get(where, candidate=candidate)

    def comparison_queries(self, comparison_id: int, **where: Any) -> pl.DataFrame:
        """The queries of a comparison, largest contribution first."""
        rows = self._calls.rows(f"/comparisons/{int(comparison_id)}/queries", **where)
        return table(rows, "comparison")

    def compare_again(self, comparison_id: int) -> dict[str, Any]:
        """Recompute a comparison with the current judgments."""
        return self._calls.post(f"/comparisons/{int(comparison_id)}/again")

    def remove_comparison(self, comparison: int | Mapping[str, Any]) -> None:
        """Delete a comparison; its runs stay.

        By id, or a result of `comparisons`: then only that very comparison is deleted.
        """
        number, known = _known(comparison, "created_us")
        self._calls.delete(f"/comparisons/{int(number)}", **known)

    def queue_comparison(self, comparison_id: int) -> dict[str, Any]:
        """Queue the pairs whose grades could flip the sign of a comparison."""
        return self._calls.post(f"/comparisons/{int(comparison_id)}/queue")

    def engines(self) -> list[dict[str, Any]]:
        """The declared engines with their newest run and last check."""
        return self._calls.rows("/engines")

    def check_engine(self, engine: str) -> dict[str, Any]:
        """Check an engine in the background; the job, as `job` returns it."""
        return self._calls.post(f"/engines/{quote(engine, safe='')}/check")

    def machine_judges(self) -> list[dict[str, Any]]:
        """The declared machine judges: their passports, costs and last runs."""
        return self._calls.rows("/judges")

    def machine_judge(self, judge: str) -> dict[str, Any]:
        """One machine judge with its passport, as `karat autojudge show --format json` has it."""
        return self._calls.get(f"/judges/{quote(judge, safe='')}")

    def doubts(
        self,
        golden: str,
        judges: Sequence[str],
        *,
        runs: Sequence[Name] = (),
        measure: str = "DCG@10",
        budget: int = 50,
    ) -> dict[str, Any]:
        """Pairs that people should look at, as `karat autojudge doubts --format json`.

        Args:
            golden: Name of a golden set.
            judges: Names of declared judges.
            runs: A stored run whose mean is to be estimated, or two for their difference.
            measure: P@k, DCG@k or RBP.
            budget: Number of pairs to draw.
        """
        params = {"judge": list(judges), "run": list(runs), "measure": measure, "budget": budget}
        return self._calls.get(_of(golden, "doubts"), **params)

    def queue_doubts(self, golden: str, judges: Sequence[str], **settings: Any) -> dict[str, Any]:
        """Queue the pairs that `doubts` returns, with the same settings."""
        return self._calls.post(_of(golden, "doubts", "queue"), judges=list(judges), **settings)

    def clicks(
        self,
        golden: str,
        model: str = "PBM",
        *,
        cuts: Sequence[float] = (),
        least: float = 20.0,
    ) -> dict[str, Any]:
        """Click models of the log, the grades that one makes, and their agreement with people.

        Args:
            golden: Name of a golden set.
            model: Whose grades; `naive` takes position for relevance.
            cuts: One cut point for each grade above the lowest; the default ones if empty.
            least: Effective impressions of a pair that gets a grade.
        """
        params = {"model": model, "cut": list(cuts), "least": least}
        return self._calls.get(_of(golden, "clicks"), **params)

    def add_clicks(self, golden: str, **settings: Any) -> dict[str, Any]:
        """Replace the grades from clicks of a golden set, with the settings of `clicks`."""
        return self._calls.post(_of(golden, "clicks"), **settings)

    def queue_clicks(self, golden: str, **settings: Any) -> dict[str, Any]:
        """Queue the pairs whose clicks contradict people, with the settings of `clicks`."""
        return self._calls.post(_of(golden, "clicks", "queue"), **settings)

    def try_query(self, engine: str, query: str, **settings: Any) -> dict[str, Any]:
        """Ask an engine one query, as `karat try --format json`.

        Args:
            engine: Name of a declared engine.
            query: A text, or the id of a query.
            settings: `template`, `params`, `depth`; `against`, `against_template` and
                `against_params` of a second engine.
        """
        return self._calls.post("/try", engine=engine, query=query, **settings)

    def tries(self, engine: str | None = None) -> list[dict[str, Any]]:
        """The tries of the golden set, or of one engine, newest first."""
        return self._calls.rows("/tries", engine=engine)

    def try_all(self, engine: str, **settings: Any) -> dict[str, Any]:
        """Ask an engine all queries in the background; the job, as `job` returns it.

        Args:
            engine: Name of a declared engine.
            settings: `template`, `params`, `name`.
        """
        return self._calls.post("/tries", engine=engine, **settings)

    def remove_try(self, name: str) -> None:
        """Delete a try, with its run and the comparison that was made for it."""
        self._calls.delete(f"/tries/{quote(name, safe='')}")

    def job(self, job_id: str) -> dict[str, Any]:
        """A job that runs in the background: its state, stage, and how much of that is done."""
        return self._calls.get(f"/jobs/{job_id}")

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        """Cancel a job; it stops at its next step."""
        return self._calls.post(f"/jobs/{job_id}/cancel")

    def trends(self) -> list[dict[str, Any]]:
        """The histories of the workspace."""
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
        """Measures over time, as `karat trend --format json`."""
        params: dict[str, Any] = {"slice": slice, "run": run, "series": series, "last": last}
        path = f"/trends/{quote(history, safe='')}"
        return self._calls.get(path, measure=_listed(measures), **params)

    def releases(self) -> list[dict[str, Any]]:
        """The releases, the latest first, as `karat release status --format json`."""
        return self._calls.rows("/releases")

    def release(self, name: str) -> dict[str, Any]:
        """Where a release is, and what comes next."""
        return self._calls.get(_release(name))

    def release_story(self, name: str) -> dict[str, Any]:
        """The story of a release, as `karat release why NAME --format json`."""
        return self._calls.get(_release(name, "story"))

    def release_record(self) -> dict[str, Any]:
        """Promised next to measured for all, as `karat release why --format json`."""
        return self._calls.get("/releases/record")

    def release_evidence(self, name: str) -> dict[str, Any]:
        """Gather the evidence of the stage again, and record it; the status."""
        return self._calls.post(_release(name, "evidence"))

    def release_advance(self, name: str, stage: str = "") -> dict[str, Any]:
        """Pass the stage on its evidence; refused if the release is not in `stage` any more."""
        return self._calls.post(_release(name, "advance"), stage=stage)

    def release_skip(self, name: str, reason: str, stage: str = "") -> dict[str, Any]:
        """Go on without the evidence of the stage; refused if it is not `stage` any more."""
        return self._calls.post(_release(name, "skip"), reason=reason, stage=stage)

    def release_hold(self, name: str, reason: str) -> dict[str, Any]:
        """Stop a release where it is; guardrails still roll it back."""
        return self._calls.post(_release(name, "hold"), reason=reason)

    def release_resume(self, name: str, reason: str) -> dict[str, Any]:
        """Let a held release go on."""
        return self._calls.post(_release(name, "resume"), reason=reason)

    def release_reviewed(self, name: str, note: str) -> dict[str, Any]:
        """Record the review of false positives, which is needed before the ramp."""
        return self._calls.post(_release(name, "reviewed"), reason=note)

    def release_override(self, name: str, reason: str) -> dict[str, Any]:
        """Ignore the rollback signal from now on: for those whom the policy names."""
        return self._calls.post(_release(name, "override"), reason=reason)

    def release_rollback(self, name: str, reason: str) -> dict[str, Any]:
        """Give all users the baseline again; `status` is None if the ledger is not written yet."""
        return self._calls.post(_release(name, "rollback"), reason=reason)

    def measures(self) -> list[dict[str, Any]]:
        """The catalogue of measures."""
        return self._calls.rows("/measures")

    def measure(self, name: str) -> dict[str, Any]:
        """One measure, in any spelling."""
        return self._calls.get(f"/measures/{quote(name, safe='')}")

    def plan(self, difference: float = 0.05, **settings: Any) -> dict[str, Any]:
        """The number of queries needed to detect a difference, as `karat golden plan`."""
        return self._calls.get("/plan", difference=difference, **settings)

    def shadow_logs(self) -> list[dict[str, Any]]:
        """The shadow logs of the workspace."""
        return self._calls.rows("/shadow")

    def shadow_log(self, name: str, *, by: str | None = None) -> dict[str, Any]:
        """A shadow log, as `karat shadow compare --format json`; `by` slices its queries."""
        return self._calls.get(f"/shadow/{quote(name, safe='')}", by=by)

    def experiments(self) -> list[dict[str, Any]]:
        """The experiments that the workspace plans."""
        return self._calls.rows("/experiments")

    def experiment(self, name: str, *, by: str | None = None) -> dict[str, Any]:
        """An experiment, as `karat experiment analyze --format json`; `by` slices its effects."""
        return self._calls.get(f"/experiments/{quote(name, safe='')}", by=by)

    def experiment_planning(self) -> dict[str, Any]:
        """What the traffic of the log can show, as `karat experiment plan --format json`."""
        return self._calls.get("/experiments/planning")

    def interleaving(self) -> dict[str, Any]:
        """Which ranking users prefer, as `karat experiment interleaving --format json`."""
        return self._calls.get("/experiments/interleaving")

    def online_status(self) -> dict[str, Any]:
        """The content of the event log, as `karat online status --format json`."""
        return self._calls.get("/online/status")

    def online_metrics(self) -> list[dict[str, Any]]:
        """The catalogue of online metrics."""
        return self._calls.rows("/online/metrics")

    def online_metric(self, name: str) -> dict[str, Any]:
        """One online metric, in any spelling."""
        return self._calls.get(f"/online/metrics/{quote(name, safe='')}")

    def online_evaluate(
        self,
        metrics: Texts = (),
        *,
        by: Texts = (),
        first: str | None = None,
        last: str | None = None,
    ) -> dict[str, Any]:
        """Online metrics, as `karat online evaluate --format json`.

        Args:
            metrics: Names; the default metrics if empty.
            by: Slices, combined as ``day,arm``; ``golden:NAME`` is an attribute of the golden set's
                queries.
            first: The first day, as ``2026-11-01``; the last four weeks by default.
            last: The last day, inclusive.
        """
        params = {"metric": _listed(metrics), "by": _listed(by), **_days(first, last)}
        return self._calls.get("/online/evaluate", **params)

    def online_queries(
        self,
        *,
        by: str | None = None,
        first: str | None = None,
        last: str | None = None,
        **where: Any,
    ) -> pl.DataFrame:
        """The queries with the most unsuccessful searches, worst first; filters by column."""
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
        """The latest window compared with its history, as `karat online watch --format json`.

        Args:
            until: The last day or hour of the window; None: the latest complete one.
            window: ``1d``, ``7d``, or hours that divide a day, such as ``6h``.
            history: Length of the history; default ``56d``.
            metrics: Names; the default metrics if empty.
            by: Slices, as in ``online_evaluate``.
            margins: Changes too small to matter, such as ``5%`` or ``CTR=0.01``.
        """
        params = {"metric": _listed(metrics), "by": _listed(by), "margin": _listed(margins)}
        return self._calls.get(
            "/online/watch", until=until, window=window, history=history, **params
        )

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
        """Offline measures of a stored run against online metrics: `karat online against`."""
        params = {"measure": measure, "metric": metric, "by": by, **_days(first, last)}
        return self._calls.get("/online/against", run=str(run), **params)

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
        """The rows behind a metric, newest first; users are pseudonymous.

        Args:
            metric: The metric; None for all rows of ``table``.
            table: The table, without a metric.
            counts: ``yes`` for rows in the numerator, ``no`` for rows only in the denominator.
            slices: Filters such as ``arm=b``.
            first: The first day.
            last: The last day.
            most: Number of rows, at most 1,000.
        """
        params = {"metric": metric, "table": table, "slice": _listed(slices), "per": most}
        page = self._calls.get(
            "/online/rows", **params, counts=counts or None, **_days(first, last)
        )
        return pl.DataFrame(page["items"], infer_schema_length=None)

    def _table(self, name: str, golden: str, **params: Any) -> pl.DataFrame:
        return table(self._calls.rows(_of(golden, name), **params), name)


def _of(golden: str, *parts: str) -> str:
    return "/golden/" + "/".join(quote(part, safe="") for part in (golden, *parts))


def _run(run: Name, *parts: str) -> str:
    return "/".join(["/runs", quote(str(run), safe=""), *parts])


def _release(name: str, *parts: str) -> str:
    return "/".join(["/releases", quote(name, safe=""), *parts])


def _judge(golden: str, part: str) -> str:
    return f"/judge/{quote(golden, safe='')}/{part}"


def _known(item: Name | Mapping[str, Any], by: str) -> tuple[Name, dict[str, Any]]:
    """The id or name of something, and a further field that identifies it."""
    return (item["id"], {by: item[by]}) if isinstance(item, Mapping) else (item, {})


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, int | str) else list(values)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: _listed(v) if name in {"by", "outcomes"} else v for name, v in settings.items()}


def _days(first: str | None, last: str | None) -> dict[str, str | None]:
    return {"from": first, "to": last}
