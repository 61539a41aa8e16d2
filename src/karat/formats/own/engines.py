"""``[engine.NAME]`` and ``[embed.NAME]`` of ``karat.toml``: engines and embedding endpoints."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from karat.engines.secrets import secret_value
from karat.errors import InputError, UsageError, check_known, nearest
from karat.formats import toml
from karat.formats.own.workspace import find_workspace, without_password
from karat.tables.engines import KINDS, SQL, EmbedConfig, EngineConfig, EngineKind, Secret
from karat.tables.golden.machine_judges import JudgeConfig

_TEXTS = (
    *("url", "index", "hits", "id", "score", "title", "text", "link", "document", "took"),
    *("function", "embed", "ca", "parts"),
)
_KEYS = sorted(
    {f.name for f in fields(EngineConfig)} - {"name", "root", "template_name", "endpoint"}
)
_EMBED_KEYS = sorted({f.name for f in fields(EmbedConfig)} - {"name", "root"})
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_SECRET = re.compile(r"authorization|api-?key|token|secret|password|cookie", re.IGNORECASE)
_SHARDS = re.compile(r"\bshards\b")  # of a request of Solr
_ONLY = {
    "hits": ("http",),
    "took": ("http",),
    "parts": ("http",),
    "function": ("python",),
    "document": ("http", "python"),
    "fields": ("opensearch", "elasticsearch", "solr"),
    "settings": ("postgres",),
}
"""Settings of some kinds only."""
_Config = TypeVar("_Config", EngineConfig, EmbedConfig)
_Value = TypeVar("_Value")


def read_engines(start: Path) -> dict[str, EngineConfig]:
    """The engines declared in the ``karat.toml`` of a folder or the nearest parent.

    Secrets are not read: ``with_secrets`` does when an engine is used.
    """
    path = find_workspace(start)
    tables, root = toml.read(path), path.resolve().parent
    endpoints = {
        name: Declared(name, "embed", table, root).endpoint()
        for name, table in tables.inner("embed", _EMBED_KEYS).items()
    }
    return {
        name: Declared(name, "engine", table, root).config(endpoints)
        for name, table in tables.inner("engine", _KEYS).items()
    }


def read_engine(name: str, start: Path) -> EngineConfig:
    """One of them; raises UsageError with the nearest name if it is not declared."""
    return declared(read_engines(start), name, "engine")


def declared(known: Mapping[str, _Value], name: str, section: str) -> _Value:
    """One of the declared engines or judges; raises UsageError with the nearest name."""
    check_known(
        name,
        known,
        f"no {section} {name!r} in karat.toml",
        f"one of {', '.join(known)}" if known else f"declare it: [{section}.{name}]",
    )
    return known[name]


def with_secrets(config: EngineConfig) -> EngineConfig:
    """The declaration with its secrets read from the environment and from files."""
    endpoint = None if config.endpoint is None else _opened(config.endpoint)
    return replace(_opened(config), endpoint=endpoint)


def _opened(config: _Config) -> _Config:
    url = revealed(config, config.url, "url")
    return replace(config, url=url, headers=revealed_headers(config))


def revealed(
    config: EngineConfig | EmbedConfig | JudgeConfig, value: str | Secret, key: str
) -> str:
    """The value of a key, read from the environment or a file if it is a secret."""
    return secret_value(value, f"{config.where} {key}", config.root, os.environ)


def revealed_headers(config: EngineConfig | EmbedConfig | JudgeConfig) -> dict[str, str]:
    names = config.headers
    return {name: revealed(config, value, f"headers.{name}") for name, value in names.items()}


def with_params(config: EngineConfig, given: Mapping[str, str]) -> EngineConfig:
    """The declaration with other values of its parameters, as typed."""
    params, known = dict(config.params), params_of(config)
    for key, text in given.items():
        check_known(
            key,
            known,
            f"the engine {config.name} has no parameter {key!r}",
            f"one of {', '.join(known)}" if known else f"params = {{ {key} = … }}",
        )
        params[key] = typed(text)
    return replace(config, params=params)


def params_of(config: EngineConfig) -> list[str]:
    """Its declared parameters, and those that its template uses without declaring them."""
    from karat.engines.search.template import names_in

    asked = [config.template, str(config.url), config.index, config.settings, dict(config.stages)]
    names = sorted(names_in(asked))
    used = [name.removeprefix("params.") for name in names if name.startswith("params.")]
    return list(dict.fromkeys([*config.params, *used]))


def template_text(config: EngineConfig) -> str:
    """Its template as text to edit; empty without one."""
    if config.template is None or config.kind in SQL:
        return str(config.template or "").strip()
    return json.dumps(config.template, indent=2, ensure_ascii=False)


def has_template(config: EngineConfig) -> bool:
    """Whether it has a template, or could have one (``http`` without one asks by its url)."""
    return config.kind != "python" and (config.kind != "http" or config.template is not None)


def with_template(config: EngineConfig, text: str) -> EngineConfig:
    """The declaration with another template, as typed; an equal one changes nothing."""
    if not has_template(config):
        raise UsageError(
            f"the engine {config.name} has no template", fix="declare one in karat.toml"
        )
    if config.kind == "solr" and _SHARDS.search(text) and not _SHARDS.search(template_text(config)):
        raise UsageError(
            "shards makes Solr call other addresses than the declared one",
            fix="declare it in karat.toml",
        )
    plain = text.replace("\r\n", "\n").strip()
    template: Any = plain or None
    if plain and config.kind not in SQL:
        template = _json(plain, f"the template of {config.name}")
    before = template_text(config) if config.kind in SQL else config.template
    if template == before:
        return config
    return replace(config, template=template, template_name="edited")


def typed(text: str) -> Any:
    """A value as typed on the command line: a number, true, false, JSON, or else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Declared:
    """The values of one ``[engine.NAME]``, ``[embed.NAME]`` or ``[judge.NAME]``."""

    def __init__(self, name: str, section: str, tables: toml.Tables, root: Path) -> None:
        self.name, self.root, self.tables = name, root, tables
        self.table = f"{section}.{name}"
        self.values: dict[str, Any] = tables.content[self.table]
        if not _NAME.fullmatch(name):
            raise self._wrong("", f"the name {name!r} is not letters, digits, - and _")

    def endpoint(self) -> EmbedConfig:
        if "url" not in self.values:
            raise self._wrong("", "no url", 'url = "http://localhost:8080/v1/embeddings"')
        return EmbedConfig(
            name=self.name,
            root=self.root,
            url=self._secret("url", self.values["url"]),
            model=self._text("model"),
            headers=self._headers(),
            template=self._template(sql=False)[0],
            output=self._text("output") or EmbedConfig.output,
            batch=self._count("batch", 64, 10_000),
            rate=self._rate(),
            timeout=self._number("timeout", 60, 0.001, 3600),
            ca=self._text("ca"),
        )

    def _rate(self) -> float | None:
        return self._number("rate", 1, 0.001, 1_000_000) if "rate" in self.values else None

    def _embed(self, endpoints: Mapping[str, EmbedConfig]) -> EmbedConfig | None:
        embed = self._text("embed")
        if not embed or ":" in embed:
            return None
        if embed not in endpoints:
            near = nearest(embed, endpoints, 1)
            raise self._wrong(
                "embed",
                f"no [embed.{embed}]",
                f"did you mean {near[0]}?"
                if near
                else f"declare [embed.{embed}], or name a function: encoder:embed",
            )
        return endpoints[embed]

    def config(self, endpoints: Mapping[str, EmbedConfig]) -> EngineConfig:
        kind = self._kind(KINDS)
        for key, kinds in _ONLY.items():
            if key in self.values and kind not in kinds:
                raise self._wrong(
                    key, f"{key} is a setting of {' and '.join(kinds)}, not of {kind}"
                )
        needed = "function" if kind == "python" else "url"
        if needed not in self.values:
            raise self._wrong("", f"no {needed}", f'{needed} = "…"')
        template, template_name = self._template(sql=kind in SQL)
        return EngineConfig(
            name=self.name,
            kind=kind,
            root=self.root,
            url=self._secret("url", self.values.get("url", "")),
            template=template,
            template_name=template_name,
            params=self._table("params"),
            exact=self._table("exact"),
            settings=self._table("settings"),
            stages=self._stages(kind),
            headers=self._headers(),
            fields=self.tables.texts(self.table, "fields"),
            depth=self._count("depth", 100, 1_000_000),
            page=self._count("page", 1000, 1_000_000),
            rate=self._rate(),
            endpoint=self._embed(endpoints),
            timeout=self._number("timeout", 10, 0.001, 3600),
            **{key: self._text(key) for key in _TEXTS if key != "url"},
        )

    def _wrong(self, key: str, what: str, fix: str | None = None) -> InputError:
        line = toml.line_of(self.tables.data, self.table, key) if key else None
        return self.tables.wrong(f"[{self.table}] {what}", fix, line)

    def _kind(self, kinds: Sequence[str]) -> Any:
        kind = self.values.get("kind")
        if kind is None:
            raise self._wrong("kind", "no kind", f"one of {', '.join(kinds)}")
        self._known("kind", str(kind), kinds, "kind")
        return kind

    def _known(self, key: str, word: str, words: Sequence[str], what: str) -> None:
        line = toml.line_of(self.tables.data, self.table, key)
        self.tables.known(f"[{self.table}] ", word, words, what, line)

    def _text(self, key: str) -> str:
        return self.tables.text_or_none(self.table, key, blank=True) or ""

    def _table(self, key: str) -> dict[str, Any]:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.tables.invalid(self.table, key, "a table", f"{key} = {{ name = … }}")
        return value

    def _number(
        self, key: str, default: float, low: float, high: float, *, whole: bool = False
    ) -> float:
        return self.tables.number(self.table, key, default, low, high, whole=whole)

    def _count(self, key: str, default: int, high: int) -> int:
        return int(self._number(key, default, 1, high, whole=True))

    def _secret(self, key: str, value: Any) -> str | Secret:
        return secret_or_text(key, value, self._wrong)

    def _headers(self) -> dict[str, str | Secret]:
        return headers_of(self._table("headers"), self._wrong)

    def _stages(self, kind: EngineKind) -> dict[str, Any]:
        """What asks each stage alone: a template, or a function, or a URL."""
        found: dict[str, Any] = {}
        for name, value in self._table("stages").items():
            own = isinstance(value, str) and (
                kind == "python" or (kind == "http" and value.startswith(("http://", "https://")))
            )
            found[name] = value if own else self._read(value, "stages", sql=kind in SQL)[0]
            if not own and not isinstance(found[name], str if kind in SQL else Mapping):
                fix = 'stages = { bm25 = "queries/bm25.json" }'
                raise self._wrong("stages", f"stage {name} is not a template", fix)
        return found

    def _template(self, *, sql: bool) -> tuple[Any, str]:
        return self._read(self.values.get("template"), "template", sql=sql)

    def _read(self, value: Any, key: str, *, sql: bool) -> tuple[Any, str]:
        """A template; JSON and SQL may be in the file or in a file of its own."""
        if value is None or isinstance(value, dict):
            return value, "" if value is None else "inline"
        if not isinstance(value, str):
            raise self._wrong(key, f"{key}: {value!r} is neither a file nor a table")
        if sql and not value.endswith(".sql"):
            return value, "inline"
        if not sql and value.lstrip().startswith(("{", "[")):
            return _json(value, self.tables.name), "inline"
        path = self.root / value
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise self._wrong(
                key,
                f"{key}: {value} cannot be read: {getattr(error, 'strerror', None) or error}",
                "a path from the folder of karat.toml",
            ) from None
        return (text if sql else _json(text, str(path))), value


def secret_or_text(key: str, value: Any, wrong: Callable[..., InputError]) -> str | Secret:
    """A text, or the place of a secret; ``wrong`` makes an error about a key."""
    if isinstance(value, str):
        if key == "url" and without_password(value) != value:
            raise wrong(
                key,
                "url contains a password, which does not belong in this file",
                'url = { env = "SEARCH_URL" }',
            )
        return value
    if isinstance(value, dict) and len(value) == 1:
        (source, name), *_ = value.items()
        if source in {"env", "file"} and isinstance(name, str) and name:
            return Secret(**{source: name})
    raise wrong(
        key, f"{key} is neither text nor the place of a secret", f'{key} = {{ env = "NAME" }}'
    )


def headers_of(
    values: Mapping[str, Any], wrong: Callable[..., InputError]
) -> dict[str, str | Secret]:
    """Headers of requests, of which secrets are not in the file."""
    headers = {key: secret_or_text(f"headers.{key}", v, wrong) for key, v in values.items()}
    for key, value in headers.items():
        if isinstance(value, str) and _SECRET.search(key):
            raise wrong(
                "headers",
                f"the header {key} is a secret, which does not belong in this file",
                f'headers = {{ {key} = {{ env = "SEARCH_TOKEN" }} }}',
            )
    return headers


def _json(text: str, file: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        fix = 'placeholders go between quotes: "size": "{size}"'
        raise InputError(
            f"the template is not valid JSON: {error.msg}", file=file, line=error.lineno, fix=fix
        ) from None
    except RecursionError:
        raise InputError("the template is nested too deeply", file=file) from None
