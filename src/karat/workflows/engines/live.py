"""Declared engines: open one, and send it all queries of a set."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.clients.python_function import load
from karat.clients.search_function import CallSettings
from karat.engines.search.engine import EngineError, document, fingerprint
from karat.engines.search.opening import open_search_engine
from karat.engines.search.template import index_of, names_in
from karat.errors import KaratError, UsageError, check_known
from karat.formats.own.engines import with_secrets
from karat.reports.phrases.numbers import counted
from karat.stats.quantiles import latency_row
from karat.tables import Queries
from karat.tables.engines import EngineConfig, EngineFacts, EngineQuery
from karat.tables.searched import Searched
from karat.workflows.engines._journal import Journal
from karat.workflows.engines.search import check_whole, manner_of, search_by

if TYPE_CHECKING:
    from karat.engines.search.embedding import Endpoint

_HOPELESS = 20  # failed requests without any answer, after which no more are sent
_PATIENCE = 60.0  # seconds without any answer, likewise
_LONGEST = 90.0  # seconds without any answer, which a further timeout would exceed
_NOT_NAMED = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
}


class _Hopeless(BaseException):
    """The engine answers nothing. A BaseException, so that it stops all calls."""


@dataclass(frozen=True)
class LiveEngine:
    """An open engine."""

    config: EngineConfig  # its declaration, with secrets
    # Takes an EngineQuery; returns what a search function returns
    call: Callable[[EngineQuery], Any]
    # What it says about itself; raises EngineError if it cannot be reached
    facts: Callable[[], EngineFacts]
    # Those of some documents that its index has: `doc_id`, `title`, `text`, `url`; None if it
    # cannot be asked for documents by id
    documents: Callable[[Sequence[str]], list[dict[str, str | None]] | None]
    server_us: list[int]  # microseconds that the engine reported, one for each answer
    # Ask for the vectors of these texts beforehand; raises KaratError
    prepare: Callable[[Sequence[str]], None] = lambda _texts: None


@contextmanager
def open_live(
    config: EngineConfig,  # its declaration, without secrets: they are read here
    *,
    depth: int | None = None,  # documents per query; the declared number if None
    titles: dict[str, str] | None = None,
    vectors: Vectors | None = None,
    explain: bool = False,  # whether `call` also returns what scores are made of, as `parts`
) -> Iterator[LiveEngine]:
    """Open a declared engine.

    Args:
        titles: Where the titles of returned documents are put, by id; nowhere if None.
        vectors: The vectors of texts, shared by several engines; its own if None.
    """
    config = with_secrets(config)
    size = config.depth if depth is None else depth
    if config.kind == "python":
        function = _with_params(load(config.function, [config.root]), config)
        yield LiveEngine(
            config, lambda query: function(query.text), EngineFacts, _by_function(config), []
        )
        return
    engine = open_search_engine(config)
    own = Vectors(config) if vectors is None else vectors
    server: list[int] = []

    def call(query: EngineQuery) -> Any:
        answer = engine.search(own.added(query), size, explain=explain)
        if answer.server_us is not None:
            server.append(answer.server_us)
        if titles is not None:
            titles.update((hit.id, hit.title) for hit in answer.hits if hit.title)
        if explain:
            return [{"id": hit.id, "score": hit.score, "parts": hit.parts} for hit in answer.hits]
        unscored = sum(hit.score is None for hit in answer.hits)
        if unscored == len(answer.hits):
            return [hit.id for hit in answer.hits]
        if unscored:
            return [{"id": hit.id, "score": hit.score} for hit in answer.hits]
        return [(hit.id, hit.score) for hit in answer.hits]

    try:
        yield LiveEngine(config, call, engine.facts, engine.documents, server, own.prepare)
    finally:
        engine.close()
        if vectors is None:
            own.close()


def _by_function(
    config: EngineConfig,
) -> Callable[[Sequence[str]], list[dict[str, str | None]] | None]:
    """Documents by the declared function from an id to the fields of a document, or None."""
    if not config.document:
        return lambda _ids: None
    function = load(config.document, [config.root])

    def documents(doc_ids: Sequence[str]) -> list[dict[str, str | None]]:
        try:
            found = [(doc_id, function(doc_id)) for doc_id in doc_ids]
            return [document(config, doc_id, fields) for doc_id, fields in found if fields]
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            kind = type(error).__name__
            raise EngineError(
                f"{config.document} raised {kind}: {error}",
                fix="return the fields of a document, or None",
            ) from None

    return documents


def _with_params(function: Callable[..., Any], config: EngineConfig) -> Callable[..., Any]:
    """The function with the declared parameters as its keywords."""
    if not config.params:
        return function
    with suppress(ValueError):  # some functions in C have no signature
        kinds = inspect.signature(function).parameters
        every = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in kinds.values())
        names = [n for n, each in list(kinds.items())[1:] if each.kind not in _NOT_NAMED]
        for name in () if every else config.params:
            check_known(
                name,
                names,
                f"{config.where}: {config.function} has no keyword {name!r}",
                f"def {config.function.rpartition(':')[2]}(text, {name}=…)",
            )
    return functools.partial(function, **config.params)


class Vectors:
    """Turns texts into the numbers of ``{vector}``, once for each text."""

    def __init__(self, config: EngineConfig) -> None:
        self._known: dict[str, list[float]] = {}
        self._endpoint: Endpoint | None = None
        self._function: Callable[[str], Any] | None = None
        if "vector" not in names_in([config.template, str(config.url)]):
            return
        if not config.embed:
            raise UsageError(
                f"{config.where}: the template has {{vector}}, and embed is missing",
                fix='embed = "encoder:embed", a function from a text to numbers, or the name of '
                "an [embed.NAME]",
            )
        if config.endpoint is None:
            self._function = load(config.embed, [config.root])
            return
        from karat.engines.search.embedding import Endpoint

        self._endpoint = Endpoint(with_secrets(config).endpoint or config.endpoint)

    def prepare(self, texts: Sequence[str]) -> None:
        """Ask an endpoint for the vectors of these texts, in batches."""
        if self._endpoint is not None:
            try:
                self._endpoint.prepare([text for text in texts if text])
            except EngineError as error:
                raise KaratError(error.what, fix=error.fix) from None

    def added(self, query: EngineQuery) -> EngineQuery:
        """The query with its vector, if the template has one."""
        if self._endpoint is not None:
            return replace(query, vector=self._endpoint.vector(query.text))
        if self._function is None:
            return query
        if query.text not in self._known:
            vector = [float(number) for number in self._function(query.text)]
            self._known[query.text] = vector
        return replace(query, vector=self._known[query.text])

    def close(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()


def engine_queries(queries: Queries) -> list[EngineQuery]:
    """The queries with their columns as filters."""
    rows = queries.frame.iter_rows(named=True)
    own = {"query_id", "text"}
    return [
        EngineQuery(row.get("text") or "", {k: v for k, v in row.items() if k not in own})
        for row in rows
    ]


def search_engine(
    queries: Queries,
    config: EngineConfig,
    out: str | Path,
    *,
    concurrency: int = 1,
    timeout: float | None = None,
    retries: int = 0,
    warmup: int = 0,
    depth: int | None = None,
    about: Mapping[str, Any] | None = None,
    watch: Callable[[int], None] = lambda _done: None,
    **settings: Any,
) -> Searched:
    """Send all queries to a declared engine, and write the run.

    An interrupted search goes on where it stopped when it is repeated with the same queries,
    engine and settings. For the arguments see ``search_by``; None for ``timeout`` and ``depth`` is
    the declared value; ``watch`` is called with the number of queries that are done, and may raise
    an error to stop the search.
    """
    if timeout is not None:
        config = replace(config, timeout=timeout)
    if depth is None:
        depth = config.depth
    else:
        check_whole("depth", depth, "-k 100")
    manner = manner_for(config, concurrency, retries, warmup)
    fix = f"karat engine check {config.name}"
    with open_live(config, depth=depth) as engine:
        recorded = about_engine(config, reached(engine, fix))
        asked = engine_queries(queries)
        engine.prepare([query.text for query in asked])
        digest = fingerprint(recorded, depth, *(fingerprint(q.text, q.filters) for q in asked))
        try:
            with Journal(out, digest) as journal:
                found = search_by(
                    queries,
                    _watched(engine.call, config.timeout),
                    out,
                    journal,
                    asked=asked,
                    watch=watch,
                    engine=config.name,
                    manner=manner,
                    warmup=warmup,
                    depth=depth,
                    about=recorded | {"timeout": f"{config.timeout:g} s"} | dict(about or {}),
                    fix=fix,
                    **settings,
                )
        except _Hopeless as error:
            raise KaratError(f"{config.name} answers nothing: {error}", fix=fix) from None
        journal.finish()
        return replace(
            found,
            notes=[*found.notes, *journal.notes()],
            server=latency_row(found.run.name, np.array(engine.server_us)),
        )


def manner_for(
    config: EngineConfig, concurrency: int = 1, retries: int = 0, warmup: int = 0
) -> CallSettings:
    """How an engine is asked: an adapter has its own timeout, a second would cost threads."""
    own = config.timeout if config.kind == "python" else None
    return manner_of(concurrency, own, retries, warmup)


def reached(engine: LiveEngine, fix: str) -> EngineFacts:
    """What the engine says about itself, before queries are sent."""
    try:
        return engine.facts()
    except EngineError as error:
        raise KaratError(f"{engine.config.name}: {error.what}", fix=error.fix or fix) from None


def about_engine(config: EngineConfig, facts: EngineFacts) -> dict[str, Any]:
    """What a run records about the engine that answered it; never an address or a secret."""
    about: dict[str, Any] = {"engine": config.name, "kind": config.kind}
    if facts.version:
        about["engine_version"] = facts.version
    if config.index:
        about["index"] = index_of(config)
    if facts.fingerprint:
        about["index_fingerprint"] = facts.fingerprint
    if facts.size is not None:
        about["index_bytes"] = facts.size
    if config.template is not None:
        about["template"] = f"{config.template_name} {fingerprint(config.template)}"
    if config.settings:
        about["settings"] = dict(config.settings)
    if config.function:
        about["function"] = config.function
    if config.embed:
        model = "" if config.endpoint is None else config.endpoint.model
        about["embed"] = f"{config.embed} {model}".rstrip()
    return about | ({"parameters": dict(config.params)} if config.params else {})


def _watched(call: Callable[[EngineQuery], Any], timeout: float) -> Callable[[EngineQuery], Any]:
    """The call, which stops the search when an engine has answered nothing for long."""
    began = time.monotonic()
    most = min(_PATIENCE, max(timeout, _LONGEST - timeout))
    lock = threading.Lock()
    failures, answered = 0, False

    def watched(query: EngineQuery) -> Any:
        nonlocal failures, answered
        if answered:
            return call(query)
        try:
            result = call(query)
        except Exception as error:
            with lock:
                failures += 1
                waited = time.monotonic() - began
                hopeless = failures >= _HOPELESS or waited > most
            if hopeless and not answered:
                raise _Hopeless(
                    f"{counted(failures, 'request', 'requests')} failed, the last with: "
                    f"{getattr(error, 'what', error)}"
                ) from None
            raise
        answered = True
        return result

    return watched
