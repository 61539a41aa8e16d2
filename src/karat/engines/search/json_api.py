"""Any search API that answers with JSON: a URL or a body with placeholders, and JSON paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from karat.engines.search.engine import EngineError, document, numbers_of
from karat.engines.search.http import Calls
from karat.engines.search.template import Values, check_params, fill_json, fill_url, names_in
from karat.errors import MissingExtra, UsageError
from karat.tables.engines import EngineAnswer, EngineConfig, EngineFacts, EngineQuery, Hit


def path(text: str, where: str) -> Callable[[Any], list[Any]]:
    """A function that finds all values at a path."""
    try:
        import jsonpath
    except ImportError:
        raise MissingExtra("python-jsonpath", "engines", f"{where}, a JSON path,") from None
    try:
        compiled = jsonpath.compile(text)
    except jsonpath.JSONPathError as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"{where} is not a JSON path: {text!r}: {reason}", fix="as in $.results[*] or $.id"
        ) from None
    every = text.endswith("[*]")
    keys = _keys(jsonpath.compile(text.removesuffix("[*]")) if every else compiled)
    if keys is None:
        return compiled.findall
    if not every:
        return lambda value: _walk(value, keys)

    def elements(value: Any) -> list[Any]:
        found = _walk(value, keys)
        return found[0] if found and isinstance(found[0], list) else compiled.findall(value)

    return elements


def _keys(compiled: Any) -> list[str | int] | None:
    """The names and places of a path to one value: walked twenty times faster than evaluated."""
    import jsonpath

    if not isinstance(compiled, jsonpath.JSONPath) or not compiled.singular_query():
        return None
    selectors = [segment.selectors[0] for segment in compiled.segments]
    return [each.name if hasattr(each, "name") else each.index for each in selectors]  # type: ignore[attr-defined]


def _walk(value: Any, keys: list[str | int]) -> list[Any]:
    for key in keys:
        if not isinstance(value, dict if isinstance(key, str) else list):
            return []
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError):
            return []
    return [value]


class JsonApi:
    """An engine of kind ``http``: GET its ``url``, or POST its ``template`` to it."""

    def __init__(self, config: EngineConfig) -> None:
        self._calls, self._config = Calls(config), config
        where = f"[engine.{config.name}]"
        asked = [str(config.url), config.template]
        if not names_in(asked) & {"query", "vector"}:
            raise UsageError(
                f"{where} has no {{query}} in url or template",
                fix='url = "https://…/search?q={query}&n={size}"',
            )
        check_params(asked, config.params, where)
        here, there = urlsplit(str(config.url))[:2], urlsplit(config.document)[:2]
        if config.document and (here != there or "{id}" not in config.document):
            raise UsageError(
                f"{where} document is not an address with {{id}} on the server of url",
                fix=f'document = "{here[0]}://{here[1]}/documents/{{id}}"',
            )
        self._pages = "from" in names_in(asked)
        self._hits = path(config.hits or "$[*]", f"{where} hits")
        self._id = path(config.id or "$.id", f"{where} id")
        self._score = path(config.score, f"{where} score") if config.score else None
        self._title = path(config.title, f"{where} title") if config.title else None
        self._parts = path(config.parts, f"{where} parts") if config.parts else None
        self._took = path(config.took, f"{where} took") if config.took else None

    def search(self, query: EngineQuery, size: int, *, explain: bool = False) -> EngineAnswer:
        """The first ``size`` documents; further pages where the request has ``{from}``."""
        hits: list[Hit] = []
        took: float | None = None
        while True:
            values = Values(
                query, min(size - len(hits), self._config.page), len(hits), self._config.params
            )
            reply = self._ask(values)
            page = self._read(reply, explain=explain)[: size - len(hits)]
            hits += page
            if self._took is not None:
                took = (took or 0.0) + _number(self._took(reply), "took")
            if len(hits) >= size or len(page) < values.size or not self._pages:
                return EngineAnswer(hits, None if took is None else round(took * 1000))

    def _ask(self, values: Values) -> Any:
        url = fill_url(str(self._config.url), values)
        if self._config.template is None:
            return self._calls.json("GET", url)
        return self._calls.json("POST", url, fill_json(self._config.template, values))

    def _read(self, reply: Any, *, explain: bool) -> list[Hit]:
        found = self._hits(reply)
        if len(found) == 1 and isinstance(found[0], list):  # $.results for $.results[*]
            found = found[0]
        return [self._hit(value, rank, explain=explain) for rank, value in enumerate(found, 1)]

    def _hit(self, value: Any, rank: int, *, explain: bool) -> Hit:
        if not isinstance(value, dict):
            if isinstance(value, str | int):
                return Hit(str(value))
            raise EngineError(
                f"document {rank} of the reply is of type {type(value).__name__}, not an object",
                fix=f"check hits in [engine.{self._config.name}]",
            )
        ids = self._id(value)
        if not ids or not isinstance(ids[0], str | int):
            keys = ", ".join(list(value)[:8])
            raise EngineError(
                f"document {rank} has no {self._config.id or '$.id'}; it has {keys}",
                fix=f'id = "$.{next(iter(value), "id")}" in [engine.{self._config.name}]',
            )
        score = None if self._score is None else _number(self._score(value), "score")
        title = self._title(value) if self._title is not None else []
        named = self._parts(value) if explain and self._parts is not None else []
        parts = numbers_of(named[0]) if named and isinstance(named[0], dict) else None
        return Hit(str(ids[0]), score, str(title[0]) if title else None, parts)

    def facts(self) -> EngineFacts:
        """Nothing is known: such an API has no common form of its facts."""
        return EngineFacts()

    def documents(self, doc_ids: Sequence[str]) -> list[dict[str, str | None]] | None:
        """Those that the API has, asked one by one; None without ``document``."""
        if not self._config.document:
            return None
        found = []
        for doc_id in doc_ids:
            if doc_id in {".", ".."}:  # an address that a server would shorten
                continue
            url = self._config.document.replace("{id}", quote(doc_id, safe=""))
            source = self._calls.json("GET", url, missing=True)
            if isinstance(source, dict):
                found.append(document(self._config, doc_id, source))
        return found

    def close(self) -> None:
        self._calls.close()


def _number(found: Sequence[Any], name: str) -> float:
    try:
        return float(found[0])
    except (IndexError, TypeError, ValueError):
        what = f"{found[0]!r}, not a number" if found else "missing"
        raise EngineError(
            f"{name} is {what}", fix=f"check {name}; leave it out if there is none"
        ) from None
