"""Batch files of a machine judge: requests out, for an API that answers later and cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from karat.clients.llm.batches import Batch, batch_line, read_answers
from karat.clients.llm.ledger import Ledger
from karat.errors import InputError, UsageError
from karat.formats.tables.writing import beside
from karat.reports.phrases.numbers import counted
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair, JudgingRun, Plan, Prices
from karat.workflows.judging._asking import keyed
from karat.workflows.judging.autojudge import Tick, planned, run


def batch_out(
    config: JudgeConfig, pairs: Sequence[JudgePair], path: Path, *, budget: float | None = None
) -> Plan:
    """Write the requests about pairs that are not graded yet; at most so many dollars' worth.

    Nothing is in the ledger before the answers are read: whether a file is sent is not known here.
    """
    config = _in_batches(config)
    found, rest = planned(config, pairs, budget)
    with beside(path) as stream:
        for pair in rest:
            stream.write(f"{batch_line(config, pair)}\n".encode("utf-8", "surrogatepass"))
    return found


def batch_in(
    config: JudgeConfig,
    pairs: Sequence[JudgePair],
    paths: Sequence[str],
    tick: Tick = lambda _done, _nano: None,
) -> JudgingRun:
    """Read answers; each is in the ledger once, however often its file is read.

    Raises:
        InputError: no answer is about one of the pairs.
    """
    config, answers = replace(_in_batches(config), rate=None), read_answers(paths)
    asked = keyed(config, pairs)
    with Ledger(config.root) as ledger:
        known = ledger.known([each.key for each in asked])
        read = ledger.answered([answer.number for answer in answers.values()])
    keys = {each.key for each in asked}
    others = len(answers.keys() - keys)
    if others == len(answers):
        raise InputError(
            f"none of {counted(others, 'answer is', 'answers are')} about these pairs by "
            f"{config.rater}",
            file=paths[0],
            fix="the same pairs and settings of the judge as for --batch-out",
        )
    new = {name for name, answer in answers.items() if answer.number not in read}
    here = [each.pair for each in asked if each.key in known or each.key in new]
    found = run(config, here, patient=True, tick=tick, judge=Batch(config, answers), once=True)
    if others:
        note = f"{counted(others, 'answer is', 'answers are')} about other pairs or another version"
        found = replace(found, notes=[*found.notes, note])
    return found


def _in_batches(config: JudgeConfig) -> JudgeConfig:
    """The judge with its prices in batches."""
    if config.kind != "chat":
        raise UsageError(
            f"{config.where} is a {config.kind}: it takes no batch files", fix='kind = "chat"'
        )
    prices = config.prices
    parts = {"input": prices.input, "output": prices.output, "cached_input": prices.cached_input}
    cheaper = {name: each * prices.batch for name, each in parts.items() if each is not None}
    return replace(config, prices=Prices(**cheaper, source=prices.source))
