"""Machine judges: their declarations, the pairs they grade, what came of each, and passports."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from karat.tables.engines import Secret

JudgeKind = Literal["chat", "command", "python"]
KINDS: tuple[JudgeKind, ...] = get_args(JudgeKind)
Outcome = Literal[
    "ok",
    "abstained",
    "refused",
    "content_filtered",
    "truncated",
    "malformed",
    "unsupported",
    "transport_failed",
    "budget_stopped",
]
"""What came of a pair; only ``ok`` has a grade."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
USABLE: tuple[Outcome, ...] = ("ok", "abstained")  # outcomes that are not asked for again
ABSTENTIONS = ("query_unclear", "document_empty", "language", "needs_expert")
IN_FLIGHT = "in_flight"


@dataclass(frozen=True)
class Prices:
    """Prices in dollars per million tokens; None is unknown, which is not 0."""

    input: float | None = None
    output: float | None = None
    cached_input: float | None = None  # as ``input`` if None
    batch: float = 1.0  # of these prices, what requests in batch files cost
    source: str = ""  # where they are from; empty for karat.toml


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """A declared judge, ``[judge.NAME]``."""

    name: str  # its name
    # `chat`: an OpenAI-compatible API; `command`: a program that reads and writes JSON lines;
    # `python`: a function
    kind: JudgeKind
    root: Path  # folder of karat.toml
    base_url: str = ""  # of the API, with its version: `https://…/v1`
    model: str = ""  # as the API calls it
    api_key: Secret | str | None = None  # its key; None without one
    headers: Mapping[str, str | Secret] = field(default_factory=dict)  # further headers
    command: Sequence[str] = ()  # the program and its arguments
    function: str = ""  # `module:function`
    template: str | None = None  # its instructions; those of karat if None
    # The grades it can give, ascending
    grades: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    # This and the four below are sent as they are; None is not sent
    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int = 512
    reasoning_effort: str = ""
    # How the form of the reply is asked for
    response: Literal["json_schema", "json_object", "text"] = "json_schema"
    prices: Prices = Prices()  # of its tokens
    rate: float | None = None  # most requests a second; None without a limit
    concurrency: int = 20  # most requests at once
    timeout: float = 60.0  # seconds of a request
    characters: int = 8000  # of a document's text that it sees
    family: str = ""  # family of the model, for the warning about systems of the same family
    kappa: float = 0.4  # what the lower end of κ with people must reach for a certificate
    ca: str = ""  # file of certificates, relative to karat.toml

    @property
    def where(self) -> str:
        return f"[judge.{self.name}]"

    @property
    def asked(self) -> dict[str, Any]:
        """All that its grades depend on, but for the pair."""
        return {
            "kind": self.kind,
            "base_url": self.base_url,
            "model": self.model,
            "command": list(self.command),
            "function": self.function,
            "template": self.template,
            "grades": list(self.grades),
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "response": self.response,
            "characters": self.characters,
        }

    @property
    def asks(self) -> str:
        """The model, program or function."""
        return self.model or self.function or " ".join(self.command)

    @cached_property
    def version(self) -> str:
        """Of the judge: another model, template or setting is another judge."""
        return hash_of(self.asked)[:12]

    @cached_property
    def rater(self) -> str:
        """Who its grades are by, in the store and in files."""
        return f"{self.name}@{self.version}"


def hash_of(value: Any) -> str:
    """SHA-256 of a value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class JudgePair:
    """A query and a document, as a judge sees them."""

    query_id: str
    doc_id: str
    query: str
    document: str
    title: str | None = None
    url: str | None = None
    need: str | None = None
    locale: str | None = None
    probe: str = ""  # name of the test that changed the document; empty for a real pair


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; None is unknown."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one pair."""

    state: Outcome
    grade: float | None = None  # of ``ok`` only
    reason: str = ""  # the judge's; for ``abstained``, one of ``ABSTENTIONS``
    evidence: str = ""  # words of the document
    flagged: bool = False  # the document contains instructions to the judge
    error: str = ""  # why there is no grade


@dataclass(frozen=True)
class Judged:
    """A pair with what came of it."""

    key: str
    query_id: str
    doc_id: str
    verdict: Verdict
    model: str | None = None  # as returned


@dataclass(frozen=True)
class Spent:
    """Attempts and their costs."""

    attempts: int = 0
    possibly_billed: int = 0  # without an answer: sent, and perhaps paid
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano: int = 0  # billionths of a dollar, of attempts with a known price
    unpriced: int = 0  # attempts whose price is unknown

    @property
    def dollars(self) -> float | None:
        """The known cost; None if no attempt has one."""
        return None if self.attempts and self.unpriced == self.attempts else self.cost_nano / 1e9

    def each(self, usable: int) -> float | None:
        """Dollars of one of so many usable judgments; None if unknown, or without any."""
        return None if self.dollars is None or not usable else self.dollars / usable


@dataclass(frozen=True)
class JudgingRun:
    """The result of ``autojudge run``."""

    judge: JudgeConfig
    judged: Sequence[Judged]  # one for each pair, in order
    asked: int  # pairs asked now; the others were known
    spent: Spent  # of this run
    stopped: str = ""  # why it ended early; empty if it did not
    notes: Sequence[str] = ()

    @property
    def states(self) -> dict[str, int]:
        """How often each outcome occurred; ``waiting`` pairs were not asked."""
        return dict(Counter(each.verdict.state for each in self.judged))


@dataclass(frozen=True)
class Plan:
    """What a run would ask, and at most cost."""

    pairs: int
    known: int  # graded before
    calls: int
    input_tokens: int  # estimated
    output_tokens: int  # the most
    dollars: float | None  # the most; None without prices
    prices: str = ""  # where the prices are from; empty for karat.toml


@dataclass(frozen=True, slots=True)
class Doubt:
    """A pair that people should look at."""

    query_id: str  # the query
    doc_id: str  # the document
    # `likely error`, `it moves the result` (of runs), `judges disagree` or `people disagree`
    chosen_by: str
    machine: float  # mean grade of the judges
    people: float | None  # people's grade; None where they have not judged it
    # With which it was drawn, for --chances; None where people have judged it
    chance: float | None


@dataclass(frozen=True)
class Test:
    """One test of a passport."""

    __test__ = False

    name: str  # its name
    value: float | None  # None if undefined
    ci_low: float | None = None  # lower end of its 95 % interval; None if unknown
    ci_high: float | None = None  # upper end
    # Of a slice, whether the judge may grade it. None: not decided, or only shown
    passed: bool | None = None
    detail: str = ""  # what it is


@dataclass(frozen=True)
class Passport:
    """What the grades of a judge are worth, measured against people's."""

    judge: JudgeConfig
    pairs: int  # pairs that both graded
    queries: int
    agreement: Mapping[str, float | None]
    confusion: Sequence[Sequence[int]]  # row: people's grade; column: the judge's
    states: Mapping[str, int]
    spent: Spent
    tests: Sequence[Test]
    verdict: Literal["certified", "candidate"]
    slices: Sequence[Test] = ()
    notes: Sequence[str] = ()
    price: float | None = None  # dollars of a usable judgment, without what tests cost
    # Dollars for as much as one more query judged by people, if it grades as many further queries
    per_effective_query: float | None = None
    measured_us: int = 0  # when it was measured, microseconds UTC


# --- what pages and the API show of judges ---


@dataclass(frozen=True)
class Failure:
    """An error of a run of judging."""

    state: str  # outcome of the request
    error: str  # what was wrong
    requests: int  # requests that it happened to


@dataclass(frozen=True)
class LastRun:
    """The last run of a judge, from the ledger."""

    what: Literal["run", "certify"]  # the command
    # `interrupted`: it has not ended, and no request was sent or answered for ten minutes
    state: Literal["running", "done", "stopped", "interrupted"]
    began_us: int  # microseconds UTC
    ended_us: int  # likewise; of the last request, if it has not ended
    pairs: int  # pairs it is about, those of tests included
    known: int  # of them graded before
    done: int  # of them asked now, with an outcome
    waiting: int  # of them without an outcome
    states: Mapping[str, int]  # how often each outcome occurred, of those asked now
    spent: Spent  # requests and costs
    budget: float | None  # most dollars; None without a limit
    stopped: str  # why it ended early; empty if it did not
    failures: Sequence[Failure]  # the most frequent errors, those of repeated requests included


@dataclass(frozen=True)
class JudgeState:
    """A declared judge."""

    name: str  # its name in karat.toml
    kind: JudgeKind  # `chat`, `command` or `python`
    asks: str  # the model, program or function
    version: str  # of the judge: it changes with model, template and settings
    rater: str  # who its grades are by: `name@version`
    grades: Sequence[float]  # the grades it can give
    bar: float  # what the lower end of κ must reach
    # The verdict of its passport; `outdated`: only an earlier version has a passport; None without
    passport: Literal["certified", "candidate", "outdated"] | None
    pairs: int  # pairs it graded
    stored: int  # grades by it in golden sets
    spent: Spent  # what this version cost
    dollars: float | None  # the same in dollars; None if unknown
    last: LastRun | None  # its last run


@dataclass(frozen=True)
class StoredPassport:
    """A passport, as `karat autojudge show --format json` prints it."""

    judge: str  # whose it is, `name@version`
    agreement: Mapping[str, float | None]  # with people: κ, its interval, and other coefficients
    confusion: Sequence[Sequence[int]]  # a row for each grade by people, a column for the judge's
    grades: Sequence[float]  # the scale
    states: Mapping[str, int]  # how many pairs ended in each outcome
    cost: Mapping[str, float | None]  # dollars, requests and tokens
    tests: Sequence[Test]  # agreement, biases and tests, with intervals
    slices: Sequence[Test]  # κ by slice
    pairs: int  # pairs that people and the judge graded
    queries: int  # their queries
    bar: float  # what the lower end of κ must reach
    verdict: Literal["certified", "candidate"]  # whether it reached that, and no test failed
    notes: Sequence[str]  # why
    measured_us: int | None = None  # when, microseconds UTC


@dataclass(frozen=True)
class JudgeReport:
    """A declared judge with its passport."""

    judge: JudgeState  # the judge
    # Of its newest earlier version if it is outdated; None without one
    passport: StoredPassport | None
    may: Sequence[str]  # what it may grade
    may_not: Sequence[str]  # what it may not grade
