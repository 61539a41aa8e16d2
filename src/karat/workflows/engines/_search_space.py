"""The parameters that a tuning searches, and the proposals of values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.engines.search.template import names_in
from karat.errors import MissingExtra, UsageError, check_known
from karat.formats.own.engines import typed
from karat.tables.engines import EngineConfig

_DIGITS = 4  # significant digits of a number that is tried


@dataclass(frozen=True)
class Searched:
    """A parameter and the values to search: a range of numbers, or a list."""

    name: str
    text: str  # as typed
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False
    values: tuple[Any, ...] = ()  # of a list

    @property
    def finite(self) -> Sequence[Any] | None:
        """All its values; None for a range of real numbers."""
        return range(int(self.low), int(self.high) + 1) if self.whole else self.values or None

    def suggested(self, trial: Any) -> Any:
        """A value that Optuna proposes, with few digits, so that it can be printed and repeated."""
        if self.values:
            return self.values[trial.suggest_categorical(self.name, range(len(self.values)))]
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        value = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def internal(self, value: Any) -> Any:
        """A value as Optuna has it; None if it is not one of the values searched."""
        if self.values:
            return self.values.index(value) if value in self.values else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if number and self.low <= value <= self.high else None


def search_space(config: EngineConfig, given: Sequence[str]) -> list[Searched]:
    """The parameters to search, from ``NAME=LOW:HIGH[:int][:log]`` or ``NAME=A,B``."""
    example = f"--param {next(iter(config.params), 'boost_title')}=0.1:10:log"
    if not given:
        raise UsageError("no parameter to search", fix=example)
    space: dict[str, Searched] = {}
    for text in given:
        name, sign, values = (part.strip() for part in text.partition("="))
        if not name or not sign or name in space:
            what = "is given twice" if name in space else "is not NAME=VALUES"
            raise UsageError(f"--param {text!r} {what}", fix=example)
        check_known(
            name,
            config.params,
            f"the engine {config.name} has no parameter {name!r}",
            f"params = {{ {name} = … }} in [engine.{config.name}]",
        )
        used = names_in([config.template, str(config.url), config.settings])
        if config.kind != "python" and f"params.{name}" not in used:
            raise UsageError(
                f"the template of {config.name} does not use {{params.{name}}}",
                fix="write it where the value belongs",
            )
        space[name] = _searched(name, values)
    return list(space.values())


def _searched(name: str, text: str) -> Searched:
    low, colon, rest = text.partition(":")
    high, *flags = rest.split(":")
    try:
        least, most = float(low), float(high)
    except ValueError:
        values = tuple(typed(value.strip()) for value in text.split(","))
        if colon or len(values) < 2 or "" in values or len(set(map(str, values))) < len(values):
            raise UsageError(
                f"--param {name}={text}: neither a range nor a list of different values",
                fix=f"--param {name}=0.1:10, {name}=1:100:int:log, or {name}=a,b",
            ) from None
        return Searched(name, text, values=values)
    wrong = ""
    if unknown := [flag for flag in flags if flag not in {"int", "log"}]:
        wrong = f"unknown {unknown[0]!r} after the range; int and log are known"
    elif not (math.isfinite(least) and math.isfinite(most) and least < most):
        wrong = "the first number is not below the second"
    elif "log" in flags and least <= 0:
        wrong = "a range on a logarithmic scale begins above 0"
    elif "int" in flags and not (least.is_integer() and most.is_integer()):
        wrong = "the ends of a range of whole numbers are not whole"
    if wrong:
        raise UsageError(f"--param {name}={text}: {wrong}", fix=f"--param {name}=1:10:log")
    return Searched(name, text, least, most, "int" in flags, "log" in flags)


Proposal = tuple[dict[str, Any], Callable[[float | None], None]]
"""Values of the parameters, and where to report the value of the measure; None for a failure."""


def is_grid(space: Sequence[Searched], most: int) -> bool:
    """Whether all combinations are at most so many that each is tried."""
    count = 1
    for each in space:
        if each.finite is None:
            return False
        count *= len(each.finite)
    return count <= most


def proposals(
    space: Sequence[Searched], declared: Mapping[str, Any], most: int, seed: int
) -> Iterator[Proposal]:
    """Combinations to try: all of them if there are at most ``most``, else what Optuna proposes."""
    if not is_grid(space, most):
        yield from itertools.islice(_proposed(space, declared, seed), most)
        return
    names = [each.name for each in space]
    for values in itertools.product(*(each.finite or () for each in space)):
        yield dict(zip(names, values, strict=True)), lambda _value: None


def _proposed(
    space: Sequence[Searched], declared: Mapping[str, Any], seed: int
) -> Iterator[Proposal]:
    """Optuna's proposals, by a tree-structured Parzen estimator; the same for the same values."""
    try:
        import optuna
    except ImportError:
        raise MissingExtra("optuna", "tune", "karat tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    first = {each.name: each.internal(declared[each.name]) for each in space}
    if None not in first.values():
        study.enqueue_trial(first)
    while True:
        trial = study.ask()
        values = {each.name: each.suggested(trial) for each in space}

        def report(value: float | None, trial: Any = trial) -> None:
            failed = optuna.trial.TrialState.FAIL
            study.tell(trial, value, state=failed if value is None else None)

        yield values, report
