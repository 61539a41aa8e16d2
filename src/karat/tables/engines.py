"""Engines: a declared search engine, what it is asked, what it answers; and tries of variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from karat.tables.about import AboutChange
from karat.tables.results import State

EngineKind = Literal["http", "opensearch", "elasticsearch", "solr", "postgres", "sqlite", "python"]
KINDS: tuple[EngineKind, ...] = get_args(EngineKind)
SQL: tuple[EngineKind, ...] = ("postgres", "sqlite")
"""Kinds whose template is SQL; that of the others is JSON."""


@dataclass(frozen=True)
class Secret:
    """Where a secret is read from when an engine is opened."""

    env: str = ""  # name of an environment variable; empty if it is a file
    file: str = ""  # a file, relative to karat.toml; its last line end is not part of the secret

    def __str__(self) -> str:
        """Where it is read from, never what it is."""
        return f"(env {self.env})" if self.env else f"(file {self.file})"


@dataclass(frozen=True)
class EmbedConfig:
    """An embedding endpoint, ``[embed.NAME]``."""

    name: str
    root: Path  # folder of `karat.toml`
    url: str | Secret = field(repr=False)
    model: str = ""
    headers: Mapping[str, str | Secret] = field(default_factory=dict, repr=False)
    template: Any = None  # the request, with `{texts}` or `{text}`, `{model}`; OpenAI's if None
    output: str = "$.data[*].embedding"  # JSON path of the vectors, in the order of the texts
    batch: int = 64  # most texts of one request
    rate: float | None = None
    timeout: float = 60.0
    ca: str = ""

    @property
    def where(self) -> str:
        return f"[embed.{self.name}]"


@dataclass(frozen=True)
class EngineConfig:
    """An engine as declared in ``karat.toml``."""

    name: str  # its declared name
    kind: EngineKind  # which adapter asks it
    root: Path  # folder of `karat.toml`; files and modules are found from it
    depth: int  # documents per query
    # Its address, the URL of a database, or the path of one (SQLite)
    url: str | Secret = field(default="", repr=False)
    index: str = ""  # index, collection or table; with `{params.NAME}`
    template: Any = None  # the request: a JSON value, or SQL; None for the adapter's own
    template_name: str = ""  # file of the template, or `inline`; empty without a template
    params: Mapping[str, Any] = field(default_factory=dict)  # values of `{params.NAME}`
    headers: Mapping[str, str | Secret] = field(default_factory=dict, repr=False)  # HTTP headers
    fields: tuple[str, ...] = ()  # fields that the adapter's own request searches, as in `title^3`
    hits: str = ""  # JSON path of the list of documents (`http`)
    id: str = ""  # JSON path or field of a document's id
    score: str = ""  # JSON path or field of its score; empty for none
    title: str = ""  # JSON path or field of its title; empty for none
    text: str = ""  # JSON path or field of its text; empty for `text`, `body` or `content`
    parts: str = ""  # JSON path of an object with the parts of its score (`http`); empty for none
    link: str = ""  # JSON path or field of its address; empty for `url`
    # Where documents are found by id: a URL with `{id}` (`http`), or `module:function` from an id
    # to the fields of a document (`python`)
    document: str = ""
    took: str = ""  # JSON path of the milliseconds that the engine took (`http`); empty for none
    function: str = ""  # `module:function` (`python`)
    # `module:function` that turns a text into the numbers of `{vector}`, or the name of an endpoint
    embed: str = ""
    endpoint: EmbedConfig | None = None  # that endpoint
    # Values of `params` under which its search for neighbours is exact
    exact: Mapping[str, Any] = field(default_factory=dict)
    # Stage → the request that asks it alone: a template, or `module:function` (`python`), or a URL
    # (`http`)
    stages: Mapping[str, Any] = field(default_factory=dict)
    # Settings of PostgreSQL for the queries, as `hnsw.ef_search`; with placeholders
    settings: Mapping[str, Any] = field(default_factory=dict)
    page: int = 1000  # most documents of one request; more are asked for page by page
    rate: float | None = None  # most requests per second; None for no limit
    timeout: float = 10.0  # seconds per request
    ca: str = ""  # file of the certificate authority that signed the server's certificate

    @property
    def where(self) -> str:
        return f"[engine.{self.name}]"


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """A query for an engine."""

    text: str  # what a user typed
    # Values of `{filters.NAME}`: the columns of the query
    filters: Mapping[str, Any] = field(default_factory=dict)
    # Values of `{vector}`; None if the engine does not need them
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that an engine returned."""

    id: str  # its id
    score: float | None = None  # its score; None if the engine gives none
    title: str | None = None  # its title; None if unknown
    parts: Mapping[str, float] | None = None  # what its score is made of; None if that is unknown


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What an engine returned for a query."""

    hits: list[Hit]  # the documents, best first
    # Microseconds that the engine reports, over all pages; None if it reports none
    server_us: int | None = None


@dataclass(frozen=True)
class EngineFacts:
    """What an engine says about itself and its index."""

    version: str | None = None  # its product and version; None if unknown
    documents: int | None = None  # number of documents in the index; None if unknown
    # Hash of the count, the mapping, the settings and the last change; None if unknown. Another
    # fingerprint means another index.
    fingerprint: str | None = None
    explains: bool = False  # whether it can explain scores
    vectors: str | None = None  # indexes of vectors: their definition and size; None if unknown
    size: int | None = None  # bytes of the index with its documents; None if unknown


CheckState = Literal["ok", "fail", "unknown"]


@dataclass(frozen=True)
class EngineCheck:
    """One check of an engine."""

    check: str  # what was checked
    state: CheckState  # `unknown` if the engine cannot say
    detail: str  # what was found
    fix: str = ""  # how to fix it; empty where nothing is to fix


@dataclass(frozen=True)
class Variant:
    """An engine to try, as declared or with another template and parameters."""

    engine: str  # name of the declared engine
    template: str | None = None  # the template as edited; None for the declared one
    params: Mapping[str, str] = field(default_factory=dict)  # other values of parameters, as typed


@dataclass(frozen=True)
class TriedHit:
    """A document that a variant returned."""

    doc_id: str
    rank: int  # from 1
    score: float | None  # None if the engine returns none
    title: str | None  # None if unknown
    grade: float | None  # by the golden set; None if not judged
    other_rank: int | None  # its rank in the other variant; None if not in it, or there is none
    parts: Mapping[str, float] | None = None  # what its score is made of; None if not asked for
    # The engine's text, if it was asked for and the golden set has none
    text: str | None = None


@dataclass(frozen=True)
class TriedVariant:
    """What a variant returned for a query, or why it returned nothing."""

    engine: str
    kind: str
    template: str | None  # name of the template and its hash; None without one
    params: Mapping[str, object]
    hits: Sequence[TriedHit]
    latency_us: int | None  # time of the answer, microseconds; None without one
    server_us: int | None  # of these, what the engine reports; None if it reports none
    error: str | None  # why there is no answer; None if there is one
    fix: str | None  # how to fix that, if known
    value: float | None  # under the measure; None where `state` says why
    low: float | None  # the lowest value over all grades that unjudged documents could have
    high: float | None  # the highest
    state: State  # of the query under the measure; `unjudged` if it has no judgments
    judged: int  # how many of the hits are judged
    note: str | None = None  # what a reader of the value must know


@dataclass(frozen=True)
class Tried:
    """One query, asked of one or two variants."""

    text: str
    query_id: str | None  # the golden set's query with this text; None if it has none
    depth: int  # documents asked for
    measure: str
    variants: Sequence[TriedVariant]

    @property
    def answered(self) -> bool:
        """Whether every variant returned an answer."""
        return all(variant.error is None for variant in self.variants)


@dataclass(frozen=True)
class TryRow:
    """A try: all queries asked of a variant, stored as a run."""

    name: str
    run: int  # id of the stored run
    engine: str
    at_us: int  # when it was asked, microseconds UTC
    by: str  # who asked
    template: str | None  # name of the template and its hash; None without one
    params: Mapping[str, str]
    before: str | None  # name of the try of this engine before it; None for the first
    changes: Sequence[AboutChange]  # what changed since the one before
    same_as: str | None  # the earlier try of this engine that returned exactly the same
    values: Mapping[str, float | None]  # by measure; empty until they are computed
    p95_us: float | None  # 95th percentile of its answers, microseconds
    failed: int  # queries without an answer
    comparison: int | None  # id of the comparison with the one before; None without one
    text: str  # its template


@dataclass(frozen=True)
class EngineState:
    """A declared engine, as its page shows it."""

    name: str
    kind: str
    address: str  # its url or function; a secret is named, not shown
    index: str | None
    template: str | None  # name of its template; None without one
    params: Mapping[str, object]
    run: int | None  # id of the newest stored run that it answered
    run_name: str | None
    asked_us: int | None  # when that run was stored, microseconds UTC
    p95_us: float | None  # latency of that run, microseconds, if it is evaluated
    version: str | None  # of the engine, as that run recorded it
    index_fingerprint: str | None  # likewise
