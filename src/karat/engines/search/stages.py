"""The stages of an engine: the parts of its request, each asked alone and deeper.

The explanation of a score never covers a document that was not returned, so what a retriever of a
hybrid search missed shows only if that retriever is asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from karat.tables.diagnosis.traces import StageKind
from karat.tables.engines import EngineConfig

_MOST_CANDIDATES = 10_000  # of num_candidates, as Elasticsearch has it
_TYPES = {"standard", "query"}  # names that say nothing about a retriever


@dataclass(frozen=True)
class EngineStage:
    name: str
    kind: StageKind
    config: EngineConfig
    parents: tuple[str, ...] = ()


@dataclass
class _Plan:
    """Stages found so far; ``rest`` is what each request keeps of the whole one."""

    config: EngineConfig
    rest: Mapping[str, Any]
    size: int
    stages: list[EngineStage] = field(default_factory=list)

    def add(self, name: str, kind: StageKind, part: Any, parents: tuple[str, ...] = ()) -> str:
        taken = {self.config.name, *(stage.name for stage in self.stages)}
        own, number = name, 1
        while own in taken:
            number += 1
            own = f"{name}-{number}"
        deeper = part if parents else _deeper(part, self.size)
        config = replace(
            self.config,
            template=dict(self.rest) | deeper,
            template_name=f"{self.config.template_name or 'template'}, {own}",
        )
        self.stages.append(EngineStage(own, kind, config, parents))
        return own


def stages_of(config: EngineConfig, size: int) -> tuple[list[EngineStage], StageKind | None]:
    """The stages before an engine's answer, each after its parents, and what makes the answer.

    Declared stages are its retrievers. Else they are found in the template: queries of ``hybrid``,
    retrievers of ``rrf``, ``linear`` and rerankers, ``knn`` next to ``query``, ``rescore``, Solr's
    ``queries`` and ``rq``. An engine of one part is one stage; what makes its answer is None.
    """
    own = replace(config, stages={})
    if config.stages:
        declared = [
            EngineStage(name, "retrieve", _declared(own, name, value))
            for name, value in config.stages.items()
        ]
        return declared, "fuse" if len(declared) > 1 else "rerank"
    template = config.template if isinstance(config.template, Mapping) else {}
    kind: StageKind | None = None
    plan = _Plan(own, {}, size)
    if config.kind in {"opensearch", "elasticsearch"}:
        kind = _lucene(plan, template)
    elif config.kind == "solr":
        kind = _solr(plan, template)
    if kind is None:
        return [EngineStage("retrieval", "retrieve", own)], None
    return plan.stages, kind


def _declared(config: EngineConfig, name: str, value: Any) -> EngineConfig:
    if config.kind == "python":
        return replace(config, function=value)
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        return replace(config, url=value, template=None)
    return replace(config, template=value, template_name=f"stage {name}")


def _lucene(plan: _Plan, template: Mapping[str, Any]) -> StageKind | None:
    """Stages of a request of OpenSearch or Elasticsearch."""
    parts = {key: template[key] for key in ("query", "knn", "retriever") if key in template}
    others = {*parts, "rescore", "search_pipeline", "explain"}
    plan.rest = {key: value for key, value in template.items() if key not in others}
    kind: StageKind | None = None
    if "retriever" in parts:
        kind = _retrievers(plan, parts["retriever"])[0]
    elif hybrid := _inner(parts.get("query"), "hybrid"):
        for query in hybrid.get("queries", ()):
            both = {"bool": {"must": [query], "filter": hybrid.get("filter")}}
            plan.add(_name(query), "retrieve", {"query": both if "filter" in hybrid else query})
        kind = "fuse"
    elif len(parts) > 1:
        plan.add("query", "retrieve", {"query": parts["query"]})
        several = parts["knn"] if isinstance(parts["knn"], list) else [parts["knn"]]
        for knn in several:
            plan.add("knn", "retrieve", {"knn": knn})
        kind = "fuse"
    if "rescore" not in template:
        return kind
    ends = tuple(stage.name for stage in plan.stages)
    plan.add("before rescore", kind or "retrieve", parts, ends)
    return "rerank"


def _retrievers(plan: _Plan, retriever: Any) -> tuple[StageKind | None, tuple[str, ...]]:
    """Add the retrievers within one; what it makes of them, and their names."""
    inside = list(_within(retriever))
    names = []
    for each in inside:
        kind, parents = _retrievers(plan, each)
        names.append(plan.add(_name(each), kind or "retrieve", {"retriever": each}, parents))
    several = any(isinstance(_inner(retriever, key), Mapping) for key in ("rrf", "linear"))
    return ("fuse" if several else "rerank") if names else None, tuple(names)


def _within(retriever: Any) -> Iterator[Any]:
    """The retrievers that one combines or reranks, with the filter that it adds to them."""
    if not isinstance(retriever, Mapping) or len(retriever) != 1:
        return
    (body,) = retriever.values()
    if not isinstance(body, Mapping):
        return
    inside = body.get("retrievers", [body["retriever"]] if "retriever" in body else [])
    for each in inside:
        # linear and weighted rrf have {"retriever": …, "weight": …}
        one = each["retriever"] if isinstance(each, Mapping) and "retriever" in each else each
        if "filter" in body and isinstance(one, Mapping) and len(one) == 1:
            ((kind, own),) = one.items()
            filters = [body["filter"], *([own["filter"]] if "filter" in own else [])]
            both = filters[0] if len(filters) == 1 else {"bool": {"filter": filters}}
            one = {kind: {**own, "filter": both}}
        yield one


def _solr(plan: _Plan, template: Mapping[str, Any]) -> StageKind | None:
    """Stages of a request of Solr."""
    params = template.get("params") or {}
    kept = {k: v for k, v in params.items() if k != "rq" and not k.startswith("combiner")}
    queries = template.get("queries")
    others = {"queries", "params"}
    plan.rest = {k: v for k, v in template.items() if k not in others} | {"params": kept}
    kind: StageKind | None = None
    if isinstance(queries, Mapping) and params.get("combiner"):
        for name, query in queries.items():
            plan.add(name, "retrieve", {"query": query})
        kind = "fuse"
    if "rq" not in params:
        return kind
    ends = tuple(stage.name for stage in plan.stages)
    before = {"params": {key: value for key, value in params.items() if key != "rq"}}
    whole = before | ({"queries": queries} if queries is not None else {})
    plan.add("before rq", kind or "retrieve", whole, ends)
    return "rerank"


def _inner(part: Any, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else None


def _name(part: Any) -> str:
    """``_name`` of a query or retriever, or its type."""
    named = next(_values(part, "_name"), None)
    if isinstance(named, str):
        return named
    if not isinstance(part, Mapping) or not part:
        return "query"
    key = next(iter(part))
    return _name(part[key].get("query", {})) if key in _TYPES and part[key] else key


def _values(part: Any, key: str) -> Iterator[Any]:
    """The values of a key, outermost first."""
    if isinstance(part, Mapping):
        if key in part:
            yield part[key]
        for value in part.values():
            yield from _values(value, key)


def _deeper(part: Any, size: int) -> Any:
    """A part of a request with at least ``size`` neighbours in each search for them."""
    if isinstance(part, list):
        return [_deeper(each, size) for each in part]
    if not isinstance(part, Mapping):
        return part
    found = {key: _deeper(value, size) for key, value in part.items()}
    if isinstance(found.get("k"), int) and len(found) > 1:
        found["k"] = max(found["k"], size)
        if isinstance(found.get("num_candidates"), int):
            most = max(found["num_candidates"], found["k"])
            found["num_candidates"] = min(most, _MOST_CANDIDATES)
    return found
