"""Two experiments in the demo's traffic: a real improvement, and one whose assignment is broken."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from karat.demo.build import Demo
from karat.demo.traffic import CUT
from karat.experiments.assignment import Rollout, arm_of
from karat.formats.own.experiments import read_plan
from karat.reports.experiments.analysis import headline
from karat.tables.online.events import EventLog
from karat.workflows.experiments.analyze import analyze_events, with_defaults
from karat.workflows.experiments.stored import FOLDER

HYBRID = """\
# The traffic of the demo: half of the users got bm25, the others hybrid.
[experiment]
name = "hybrid"
control = "bm25"
treatment = "hybrid"
users = 900
weeks = 4
decide = ["ZeroResults"]

[guard]  # harm up to this does not matter
CTR = "5%"
Abandonment = "5%"
"Latency(p95)" = 120  # milliseconds
ErrorRate = 0.005
"""
PAGE = """\
# Another test with the same users. Its new page does not load on phones, so that these users never
# tell the service that they were in the arm.
[experiment]
name = "page"
control = "old"
treatment = "new"
decide = ["CTR"]
exposures = "exposures.csv"
"""


def keep_experiments(demo: Demo, log: EventLog) -> None:
    """Write the plans and the exposures of the second, unless they are there."""
    folder = demo.directory / FOLDER
    folder.mkdir(exist_ok=True)
    for name, text in (("hybrid.toml", HYBRID), ("page.toml", PAGE)):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
    if not (folder / "exposures.csv").exists():
        _exposures(log).write_csv(folder / "exposures.csv")


def _exposures(log: EventLog) -> pl.DataFrame:
    """Each user's first search, with an arm by hash; phones of the new arm are lost."""
    rollout = Rollout("page", "demo", "old", "new", control_share=0.5, treatment_share=0.5)
    users = (
        pl.scan_parquet([file.path for file in log.files])
        .filter(pl.col("kind") == "search", ~pl.col("bot").fill_null(value=False))
        .group_by("user_id")
        .agg(pl.col("time_us").min().alias("timestamp"), pl.col("attribute_device").first())
        .sort("user_id")
        .collect()
    )
    arms = [arm_of(user, rollout) for user in users["user_id"]]
    users = users.with_columns(variation_id=pl.Series(arms), experiment_id=pl.lit("page"))
    lost = (pl.col("variation_id") == "new") & (pl.col("attribute_device") == "phone")
    return users.filter(~lost).drop("attribute_device")


def paragraphs(demo: Demo, log: EventLog) -> Iterator[str]:
    """What both experiments say by themselves."""
    if CUT not in log.attributes:
        return
    for name in ("hybrid", "page"):
        plan = with_defaults(read_plan(demo.directory / FOLDER / f"{name}.toml"))
        yield f"Experiment {name}: {headline(analyze_events(log, plan))}."
