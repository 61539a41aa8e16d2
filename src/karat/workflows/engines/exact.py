"""Approximate search for neighbours against the engine's own exact search: recall and latency."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from karat.engines.search.engine import EngineError
from karat.engines.search.opening import open_search_engine
from karat.errors import KaratError, UsageError
from karat.formats.own.engines import with_params, with_secrets
from karat.stats.intervals import shown, t_interval
from karat.stats.quantiles import latency_row
from karat.tables import Queries, Run
from karat.tables.engines import EngineConfig, EngineFacts
from karat.tables.searched import Exactness, QueryRecall, RecallRow
from karat.workflows.engines.live import Vectors, open_live, reached
from karat.workflows.engines.tuning import Asking, ask_engine

EXACT = "exact"
_MOST = 100  # settings
_K = 10


def search_exact(
    queries: Queries,
    config: EngineConfig,
    given: Mapping[str, str],
    *,
    depth: int | None = None,  # number of documents that are compared; 10 if None
    concurrency: int = 1,
    retries: int = 0,
    warmup: int = 0,
) -> Exactness:
    """Ask an engine under each setting, and exactly.

    Args:
        given: For each parameter its values, as ``10,50,100``: each combination is a setting.
    """
    k = _K if depth is None else depth
    if k < 1:
        raise UsageError(f"depth is {k}, not a whole number from 1", fix="-k 10")
    lists = [[(name, value) for value in text.split(",")] for name, text in given.items()]
    settings = [dict(each) for each in itertools.product(*lists)]
    if len(settings) > _MOST:
        raise UsageError(f"{len(settings)} settings are more than {_MOST}", fix="fewer values")
    configs = {_name(each) or "declared": with_params(config, each) for each in settings}
    exact, how = _exact(next(iter(configs.values())))
    with closing(Vectors(config)) as vectors:
        asking = Asking(concurrency, retries, k, vectors)
        asked = {EXACT: exact, **configs}
        facts = {}
        for name, each in asked.items():  # each may have an index of its own
            with open_live(each, vectors=vectors) as engine:
                facts[name] = reached(engine, f"karat engine check {config.name}")
        runs = {
            name: ask_engine(each, queries, asking, name, warmup) for name, each in asked.items()
        }
    truth = _first(runs[EXACT], k)
    texts = queries.texts()
    rows, by_query = [], []
    for name, run in runs.items():
        found = _first(run, k)
        recalls = {q: len(docs & found.get(q, set())) / len(docs) for q, docs in truth.items()}
        row = _row(name, run, np.array(list(recalls.values())))
        rows.append(replace(row, index_bytes=facts[name].size))
        if name != EXACT:
            worst = sorted(recalls.items(), key=lambda pair: pair[1])
            by_query += [QueryRecall(name, q, texts.get(q, ""), value) for q, value in worst]
    return Exactness(config.name, k, how, _vectors(facts.values()), rows, by_query)


def _vectors(facts: Iterable[EngineFacts]) -> str | None:
    found = dict.fromkeys(each.vectors for each in facts if each.vectors)
    return "; ".join(found) or None


def _row(name: str, run: Run, recalls: Any) -> RecallRow:
    times = latency_row(name, run.answers["latency_us"].drop_nulls().to_numpy())
    p50, p95 = (0.0, 0.0) if times is None else (times.p50_us, times.p95_us)
    if name == EXACT or not len(recalls):
        return RecallRow(name, len(recalls), None, None, None, p50, p95)
    span = shown(t_interval(recalls), recalls, 0.0, 1.0)
    return RecallRow(name, len(recalls), float(recalls.mean()), span.low, span.high, p50, p95)


def _first(run: Run, k: int) -> dict[str, set[str]]:
    rows = run.to_depth(k).frame().group_by("query_id", maintain_order=True).agg("doc_id")
    return {query: set(docs) for query, docs in rows.iter_rows()}


def _name(params: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _exact(config: EngineConfig) -> tuple[EngineConfig, str]:
    """The declaration of the exact search, and how it is exact."""
    if config.exact:
        changed = {name: str(value) for name, value in config.exact.items()}
        exact = replace(config, params={**config.params, **config.exact})
        return exact, f"with {_name(changed)}"
    if config.kind == "postgres":
        settings = {**config.settings, "enable_indexscan": "off"}
        return replace(config, settings=settings), "with enable_indexscan = off"
    if config.kind in {"opensearch", "elasticsearch"}:
        from karat.engines.search.opensearch import OpenSearch

        opened = open_search_engine(with_secrets(config))
        assert isinstance(opened, OpenSearch)
        with closing(opened):
            try:
                template = opened.exact_template()
            except EngineError as error:
                raise KaratError(f"{config.name}: {error.what}", fix=error.fix) from None
        return replace(config, template=template), "with script_score over all vectors"
    if config.kind == "sqlite":
        raise UsageError(
            f"{config.where}: sqlite-vec compares a query with every vector: its recall is 1",
            fix="check engines that have an index of vectors",
        )
    raise UsageError(
        f"{config.where}: karat does not know how to search it exactly",
        fix="exact = { NAME = VALUE }, the params under which the search is exact",
    )
