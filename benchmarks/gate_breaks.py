"""What a gate with the starter policy stops: a search broken, or changed harmlessly, in many ways.

    python benchmarks/gate_breaks.py [CRANFIELD]

CRANFIELD holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` (BEIR's form); without
it, ``../shared/data/cranfield`` beside the project. The search is the demo's BM25. Its answers are
written to a run file and broken there, and the function is broken live and asked by
``karat.benchmark``. Each candidate goes through ``gate`` as a file, with the policy that
``karat gate --init QRELS RUN`` writes for the baseline. Prints a Markdown table.

Times in files are made up, log-normal. Live ones are real; the search then waits about 60 ms for
each query, so that what else the machine does is small beside it, and 8 queries are asked at once.
"""

from __future__ import annotations

import math
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import polars as pl
from gate_run_breaks import in_file
from gate_search_breaks import Refused, live, paused
from gate_world import Answer, Break, Search, World, cranfield, written

import karat
from karat.errors import KaratError
from karat.tables.release.gate import Gate
from karat.workflows.release.gate import start_policy

CRANFIELD = Path(__file__).resolve().parents[2] / "shared/data/cranfield"
WITHIN = "the drop is within the 5 % allowed"


@dataclass(frozen=True)
class Outcome:
    """What became of a broken search.

    Attributes:
        broken: How it was broken.
        code: Exit code of ``karat gate``: 0 let pass, 1 failed, 2 refused, 3 not sure or unhealthy.
        verdict: The verdict, or ``refused``.
        reason: The first reason.
        drops: Relative drop of nDCG@10 and AP; None where there is none.
    """

    broken: Break
    code: int
    verdict: str
    reason: str
    drops: tuple[float | None, ...] = field(default=(None, None))


class Trial:
    """The gate over one world, in a folder of its own."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.search = world.over(world.documents)
        self.qrels = karat.Qrels.from_dict(world.grades)
        texts = world.texts
        self.queries = karat.Queries(
            pl.DataFrame({"query_id": list(texts), "text": list(texts.values())})
        )
        rng = Random(0)
        self.run = {
            query: Answer(self.search(text), 30 * math.exp(0.5 * rng.gauss(0, 1)))
            for query, text in texts.items()
        }
        (folder / "baseline.jsonl").write_bytes(written(self.run))
        self.policy = self.started("baseline.jsonl")

    def started(self, baseline: str) -> Path:
        """The policy that ``karat gate --init`` writes."""
        path = self.folder / f"{baseline}.toml"
        run = karat.read_run(self.folder / baseline)
        start_policy(path, self.qrels, run, queries=self.queries)
        return path

    def live_baseline(self) -> None:
        """Ask the search as it is, timed."""
        self.asked(paused(self.search, self.world), "live.jsonl")
        self.live_policy = self.started("live.jsonl")

    def asked(self, search: Search, name: str) -> None:
        """Ask a search by ``karat.benchmark``, and write its run."""
        golden = (self.queries, self.qrels)
        results = karat.benchmark(golden, search, ["nDCG@10"], concurrency=8, progress=False)
        [run] = results.runs.values()
        karat.write_run(run, self.folder / name)

    def warm(self, broken: Break) -> None:
        """Ask a broken search everything once, untimed."""
        search = broken.how(self.search, replace(self.world, pause_ms=0.0), Random(broken.name))
        for text in self.world.texts.values():
            with suppress(Refused):
                search(text)

    def outcome(self, broken: Break) -> Outcome:
        """What the gate says of a broken search."""
        rng = Random(broken.name)
        try:
            if broken.live:
                self.warm(broken)
                self.asked(
                    broken.how(paused(self.search, self.world), self.world, rng), "new.jsonl"
                )
            else:
                found = broken.how(dict(self.run), self.world, rng)
                content = found if isinstance(found, bytes) else written(found)
                (self.folder / "new.jsonl").write_bytes(content)
            held = karat.gate(
                self.live_policy if broken.live else self.policy,
                self.qrels,
                self.folder / ("live.jsonl" if broken.live else "baseline.jsonl"),
                self.folder / "new.jsonl",
                queries=self.queries,
            )
        except KaratError as error:
            reason = str(error).splitlines()[0].replace(f"{self.folder}/", "")
            return Outcome(broken, error.exit_code, "refused", reason)
        return Outcome(broken, held.exit_code, held.verdict, said(held), dropped(held))


def said(held: Gate) -> str:
    """The first check that did not pass."""
    first = held.checks[0]
    return "" if first.verdict == "pass" else f"{first.rule}: {first.reason}"


def dropped(held: Gate) -> tuple[float | None, ...]:
    """The relative drops by the rules, in the order of the policy."""
    found = {
        check.measure: check.drop / check.baseline_value
        for check in held.checks
        if check.measure and check.drop is not None and check.baseline_value
    }
    return found.get("nDCG@10"), found.get("AP")


def row(outcome: Outcome) -> str:
    """A line of the table."""
    broken = outcome.broken
    result = {0: "passes", 1: "**fail**", 2: "**refused**", 3: f"**{outcome.verdict}**"}
    shown = result[outcome.code].replace("_", " ")
    reason = outcome.reason
    if not outcome.code:
        why = broken.why or WITHIN
        reason = "rightly: no user is worse off" if broken.harmless else f"not stopped: {why}"
    known = outcome.drops if outcome.verdict != "unhealthy" else (None, None)
    drops = ["" if drop is None else f"{-100 * drop:+.1f} %" for drop in known]
    drops = ["0" if drop in ("+0.0 %", "-0.0 %") else drop.replace("-", "−") for drop in drops]
    cells = [broken.name, *drops, f"{shown} ({outcome.code})", reason.replace("|", "\\|")]
    return f"| {' | '.join(cells)} |"


def summary(outcomes: list[Outcome]) -> str:
    """How many were stopped."""
    harmful = [each for each in outcomes if not each.broken.harmless]
    harmless = [each for each in outcomes if each.broken.harmless]
    by_code = {code: sum(each.code == code for each in harmful) for code in (1, 2, 3, 0)}
    unsure = sum(each.verdict == "cannot_tell" for each in harmful)
    return (
        f"Of {len(harmful)} ways of breaking it, {len(harmful) - by_code[0]} are stopped: "
        f"{by_code[1]} fail (1), {by_code[2]} are refused (2), {by_code[3] - unsure} are unhealthy "
        f"and {unsure} cannot be decided (3); {by_code[0]} pass. "
        f"Of {len(harmless)} harmless changes {sum(not each.code for each in harmless)} pass."
    )


def main() -> None:
    """Print a table of what is stopped."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CRANFIELD
    if not (folder / "corpus.jsonl").is_file():
        print(f"skipped: there is no Cranfield in {folder}")
        return
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        trial = Trial(cranfield(folder), Path(scratch))
        trial.live_baseline()
        for title, breaks in (("In run files", in_file()), ("Live", live())):
            print(f"\n### {title}\n\n| change | nDCG@10 | AP | gate | why |")
            print("| --- | ---: | ---: | --- | --- |")
            for broken in breaks:
                outcomes.append(trial.outcome(broken))
                print(row(outcomes[-1]), flush=True)
    print(f"\n{summary(outcomes)}")


if __name__ == "__main__":
    main()
