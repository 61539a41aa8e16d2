"""karat gate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.progress import watching
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables.gate import Gate

_POLICY = 'a file that holds, for example,\n[[rule]]\nmeasure = "nDCG@10"\nmax_drop = "5%"'


@click.command()
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="[BASELINE] CANDIDATE", nargs=-1, required=True)
@click.option("--policy", metavar="FILE", help="What the candidate must hold, as TOML.")
@click.option(
    "--save-baseline",
    metavar="FILE",
    help="Save the values of QRELS RUN as a baseline (.json); those the policy asks for, or -m.",
)
@click.option(
    "-m",
    "--measure",
    "measures",
    metavar="MEASURE",
    multiple=True,
    help="With --save-baseline: a measure to save; repeat for more.",
)
@options.queries
@options.rel
@options.scale
@options.complete
@options.depth
@options.collapse
@options.documents
@options.output("table", "json", "junit", "github", "md")
@options.input_format
@options.qrels_format
@options.measures_from
def gate(
    qrels: str,
    runs: tuple[str, ...],
    policy: str | None,
    save_baseline: str | None,
    measures: tuple[str, ...],
    output: str,
    input_format: str | None,
    qrels_format: str | None,
    **settings: Any,
) -> int:
    """Hold a candidate against a policy: may it ship?

    BASELINE is a run or a saved baseline; leave it out where no rule is about a drop. Ends with 0
    if every rule holds, 1 if one is broken, 3 if nobody can tell (too little evidence, an
    unhealthy search, a stale baseline), 4 if a rule makes no sense here.

    \b
    karat gate --policy gate.toml QRELS BASELINE CANDIDATE
    karat gate --save-baseline main.json --policy gate.toml QRELS RUN
    """  # noqa: D301 - click wants a real backspace before what it must not wrap
    from karat import formats
    from karat.formats.baseline import holds_baseline
    from karat.formats.policy import read_policy
    from karat.workflows import gate as workflow

    if policy is None and save_baseline is None:
        raise UsageError("no --policy says what the candidate must hold", fix=_POLICY)
    _refuse_files(runs, saving=save_baseline is not None)
    if measures and (save_baseline is None or policy is not None):
        raise UsageError("the policy says which measures count, not -m", fix="leave -m out")
    held = None if policy is None else read_policy(policy, settings["rel"])
    settings["documents"] = _documents(qrels, settings, held.attributes if held else [])
    with watching() as watch:
        read = [
            path
            if len(runs) > at + 1 and holds_baseline(path)
            else formats.read_run(path, input_format, watch=watch)
            for at, path in enumerate(runs)
        ]
    judgments = formats.read_qrels(qrels, qrels_format)
    if not settings["queries"] and formats.holds_queries(qrels):
        settings["queries"] = qrels
    if save_baseline is not None:
        wanted = [str(measure) for measure in held.measures] if held else list(measures) or None
        saved = workflow.save_baseline(save_baseline, judgments, read[0], wanted, **settings)
        what = f"{', '.join(saved.measures)} of {saved.run}"
        print(f"karat: {save_baseline} holds {what}", file=sys.stderr)
        return 0
    found = workflow.gate(held, judgments, *([None] * (len(read) == 1)), *read, **settings)
    _print(found, output)
    return found.exit_code


def _refuse_files(runs: tuple[str, ...], *, saving: bool) -> None:
    if saving and len(runs) != 1:
        raise UsageError(
            f"--save-baseline saves one run, not {len(runs)}",
            fix="karat gate --save-baseline FILE QRELS RUN",
        )
    if len(runs) > 2:
        raise UsageError(
            f"{len(runs)} runs, and a gate holds one candidate against one baseline",
            fix="karat gate --policy FILE QRELS BASELINE CANDIDATE",
        )


def _documents(qrels: str, settings: dict[str, Any], attributes: list[str]) -> str | None:
    """The documents given, or those of a BEIR folder where the policy slices by them."""
    return options.documents_in(qrels, settings | {"by": attributes})


def _print(found: Gate, output: str) -> None:
    if output == "table":
        from karat.reports.gate import show_gate

        show_gate(found, options.out())
        return
    from karat.reports.gate import to_json
    from karat.reports.github import to_github
    from karat.reports.junit import to_junit
    from karat.reports.markdown import gate_comment

    write = {"json": to_json, "junit": to_junit, "github": to_github, "md": gate_comment}[output]
    sys.stdout.write(write(found))
