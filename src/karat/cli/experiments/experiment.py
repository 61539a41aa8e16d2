"""karat experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.online import options as online_options

if TYPE_CHECKING:
    from karat.tables.experiments.experiment import ExperimentPlan


@options.group(
    "karat experiment analyze events --control a --treatment b",
    "karat experiment analyze events --plan plan.toml --by class",
)
def experiment() -> None:
    """Is it better for users: experiments whose arms are in the log."""


planned = options.together(
    options.option("--control ARM", "The arm that users had before.  [default: that of the plan]"),
    options.option("--treatment ARM", "The arm that is new.  [default: that of the plan]"),
    options.option("--plan FILE", "Plan of the experiment (TOML): arms, metrics, size, windows."),
    options.option(
        "--decide METRIC",
        "A metric that decides; repeat for more (Holm).  [default: SAT, without --guard]",
        multiple=True,
    ),
    options.option(
        "--guard guards METRIC:MARGIN",
        "A guardrail and the harm that does not matter, in its unit or as a share of the control: "
        "ErrorRate:0.002, CTR:2%, Latency:p95:20; repeat for more.",
        multiple=True,
    ),
    options.option(
        "-m --metric diagnose METRIC",
        "A metric that explains and decides nothing; repeat for more.",
        multiple=True,
    ),
    options.option(
        "--window SPAN", "Each user counts for this long from the first exposure, such as 7d."
    ),
    options.option("--shares A:B", "Planned shares of control and treatment, such as 90:10."),
    options.option("--users N", "Planned number of users of both arms.", type=click.IntRange(2)),
)


def _prepare(settings: dict[str, Any]) -> None:
    """Check that the packages for a log are there, and read the rules."""
    from karat.online.rules import rules_from

    online_options.need_log(settings["engine"])
    settings["rules"] = rules_from(settings["rules"])


@options.command(
    "karat experiment analyze events --control a --treatment b",
    "karat experiment analyze log.parquet --plan plan.toml --format json",
    of=experiment,
)
@click.argument("log", type=options.Place())
@planned
@options.option(
    "--by SLICE", "Slice by day, class or an attribute of the log; repeat.", multiple=True
)
@online_options.classes
@options.option("--exposures FILE", "Who was in which arm and when, if the log does not say.")
@options.option("--experiment NAME", "With --exposures: the experiment, if there are several.")
@options.option(
    "--differs RUN",
    "Runs of both arms for the queries of the log (give it twice, with --queries): users count "
    "from the first search on whose top ten differ.",
    multiple=True,
)
@online_options.read_log
@options.option(
    "--despite REASON", "Show effects of an unhealthy experiment; the reason is recorded."
)
@online_options.rules
@online_options.engine
@options.option("--seed", "Random seed of the resampled users.", 0, type=click.IntRange(min=0))
@options.output("table", "json", "md")
@options.option("--report FILE", "Also write a page: a single .html file.")
@options.open_page
@options.all_notes
def analyze(
    log: str | Path,
    output: str,
    report: str | None,
    open_page: bool,
    all_notes: bool,
    **settings: Any,
) -> int:
    """Compare two arms: health, effects with intervals, and a verdict.

    LOG is an event store (see karat online import) or a log file. Exit codes: 0 the treatment is
    better and harms nothing · 1 it is worse, or a guardrail is breached · 3 cannot tell, or the
    experiment is unhealthy.
    """
    from karat.cli.pages import need_page, put_page
    from karat.cli.progress import working
    from karat.reports.experiments import analysis as shown
    from karat.workflows.experiments.analyze import analyze_events

    if len(settings["differs"]) not in {0, 2}:
        raise click.UsageError("--differs is given twice: a run of each arm.")
    need_page(report, opened=open_page)
    _prepare(settings)
    plan = _plan(settings)
    exposures, name = settings.pop("exposures"), settings.pop("experiment")
    settings["despite"] = settings["despite"] or ""
    with working("events") as progress:
        result = analyze_events(
            log,
            plan,
            exposures=(exposures, name),
            progress=progress,
            **settings,
        )
    options.emit(shown, result, output, all_notes=all_notes)
    if report is not None:
        from karat.reports.html.experiment import to_page

        put_page(report, to_page(result), opened=open_page)
    return result.exit_code


def _plan(settings: dict[str, Any]) -> ExperimentPlan:
    """The plan that options and a file make together; options win."""
    from karat.errors import UsageError
    from karat.formats.own.experiments import read_plan
    from karat.online.rules import duration
    from karat.tables.experiments.experiment import ExperimentPlan
    from karat.workflows.experiments import analyze as workflow

    path = settings.pop("plan")
    asked = {
        key: settings.pop(key) for key in ("control", "treatment", "decide", "diagnose", "users")
    }
    guards = tuple(map(workflow.read_guard, settings.pop("guards")))
    window, shares = settings.pop("window"), settings.pop("shares")
    changes = {
        **asked,
        "guards": guards,
        "window_us": None if window is None else duration(window),
        "shares": None if shares is None else workflow.read_shares(shares),
    }
    if path is not None:
        base = read_plan(path)
    elif asked["control"] is None or asked["treatment"] is None:
        raise UsageError(
            "no arms are named", fix="--control ARM --treatment ARM, or a plan that names them"
        )
    else:
        base = ExperimentPlan(asked["control"], asked["treatment"])
    return workflow.plan_of(base, changes)


@options.command(
    "karat experiment plan events",
    "karat experiment plan log.parquet -m SAT -f json",
    of=experiment,
)
@click.argument("log", type=options.Place())
@options.option(
    "-m --metric metrics METRIC",
    "A metric that could decide; repeat for more.  [default: the usual ones]",
    multiple=True,
)
@online_options.read_log
@online_options.rules
@online_options.engine
@options.option("--seed", "Random seed of the splits.", 0, type=click.IntRange(min=0))
@options.output("table", "json", "md")
@options.all_notes
def plan(log: str | Path, output: str, all_notes: bool, **settings: Any) -> None:
    """Which effects your traffic can show, and which metrics may decide.

    For 5, 10 and 50 % of the users of LOG in each arm, and whole weeks: the smallest change found
    with power .8. 1,000 splits into equal arms show whether a metric's intervals are right, and a
    planted degradation whether it sees worse results.
    """
    from karat.reports.experiments import planning as shown
    from karat.workflows.experiments.plan import plan_experiment

    _prepare(settings)
    options.emit(shown, plan_experiment(log, **settings), output, all_notes=all_notes)


@options.command(
    "karat experiment interleaving events",
    "karat experiment interleaving log.parquet --credit satisfied -f json",
    of=experiment,
)
@click.argument("log", type=options.Place())
@options.option(
    "--credit NAME",
    "A point for a ranking: a click, a satisfied click, or a click before a purchase.",
    "click",
    type=click.Choice(["click", "satisfied", "purchase"]),
)
@online_options.read_log
@online_options.rules
@online_options.engine
@options.output("table", "json", "md")
@options.all_notes
def interleaving(log: str | Path, output: str, all_notes: bool, **settings: Any) -> int:
    """Which of two interleaved rankings users prefer.

    LOG has the attribute teams for each interleaved search: the mark of karat.interleave. Exit
    codes: 0 B is preferred · 1 A is preferred · 3 cannot tell, or the draft is not random.
    """
    from karat.reports.experiments import interleaving as shown
    from karat.workflows.experiments.interleaving import analyze_interleaving

    _prepare(settings)
    result = analyze_interleaving(log, **settings)
    options.emit(shown, result, output, all_notes=all_notes)
    return result.exit_code
