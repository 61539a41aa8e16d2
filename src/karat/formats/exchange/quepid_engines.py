"""The search engine of a Quepid case, as a declaration for ``karat.toml``.

Source: ``app/views/api/v1/export/cases`` of Quepid 8.6. Credentials are never taken over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from karat.errors import InputError
from karat.formats.exchange.source_file import Node
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import BOM

_KINDS = {
    "es": "elasticsearch",
    "elasticsearch": "elasticsearch",
    "os": "opensearch",
    "opensearch": "opensearch",
    "solr": "solr",
    "searchapi": "http",
}
_VARIABLE = re.compile(r"#\$([^#\n]+)##|##([^#$\n]+)##")
_FIELD = re.compile(r"[\w.-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def engine_of_case(path: Path) -> tuple[str, list[str]]:
    """``[engine.NAME]`` as TOML, and notes on what was left out."""
    try:
        data = path.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    root = Node(parsed(data, str(path), 1), "", str(path))
    tried = root.get("try")
    if tried is None:
        raise InputError(
            "the case has no try, which names its engine",
            file=str(path),
            fix="export it from https://QUEPID/api/export/cases/ID.json",
        )
    endpoint = tried.get("search_endpoint") or tried  # a part of the try before Quepid 8
    engine = endpoint.need("search_engine")
    if engine.text() not in _KINDS:
        raise engine.wrong(
            "es, os, solr or searchapi",
            'declare it in karat.toml: kind = "http", with hits and id; or kind = "python"',
        )
    kind = _KINDS[engine.text()]
    address = endpoint.get("endpoint_url") or endpoint.need("search_url")
    used: list[str] = []
    params = tried.need("query_params")
    fields = _fields(_text(tried, "field_spec"))
    settings: dict[str, Any] = {"kind": kind}
    template = ""
    if kind == "http":
        settings["url"] = _without_user(address)
        if _text(endpoint, "api_method").upper() == "POST":
            template = _template(params, kind, used)
        else:
            settings["url"] += f"?{_VARIABLE.sub(_renamer(params, used), params.text().strip())}"
        settings["hits"] = "$.docs[*]"
        settings |= {key: f"$.{name}" for key, name in {"id": "id", **fields}.items()}
    else:
        settings["url"], settings["index"] = _place(address)
        settings |= {key: name for key, name in fields.items() if name != "_id"}
        template = _template(params, kind, used)
    given = _variables(tried)
    if missing := [name for name in used if name not in given]:
        raise InputError(f"the variable ##{missing[0]}## has no value", file=str(path))
    settings["params"] = {name: given[name] for name in dict.fromkeys(used)}
    name = re.sub(r"\W+", "-", _text(root, "case_name").lower()).strip("-")[:64] or "quepid"
    return _toml(name, settings, template), list(_notes(endpoint, address))


def _text(node: Node, key: str) -> str:
    return node.text_of(key) or ""


def _without_user(address: Node) -> str:
    parts = urlsplit(address.text())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise address.wrong("an address")
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return f"{parts.scheme}://{host}{parts.path}"


def _place(address: Node) -> tuple[str, str]:
    """The engine's address without credentials, and the index."""
    base, _, path = _without_user(address).partition("://")
    host, *folders = [folder for folder in path.split("/") if folder]
    if folders and folders[-1] in {"_search", "select", "query"}:
        folders.pop()
    if not folders:
        raise address.wrong("an address that names an index")
    return f"{base}://{'/'.join([host, *folders[:-1]])}", folders[-1]


def _fields(spec: str) -> dict[str, str]:
    """``id``, ``title`` and ``text`` of a specification such as ``id:_id, title:name, overview``.

    The text is the first field that is only displayed.
    """
    parts = [part.strip() for part in spec.split(",")]
    named = dict(part.split(":", 1) for part in parts if ":" in part)
    plain = (part for part in parts if _FIELD.fullmatch(part))
    found = {"id": named.get("id", ""), "title": named.get("title", ""), "text": next(plain, "")}
    return {key: name.strip() for key, name in found.items() if _FIELD.fullmatch(name.strip())}


def _variables(tried: Node) -> dict[str, Any]:
    """Values of the case's variables: a table, or a list of ``name`` and ``value``."""
    table = tried.get("curator_vars")
    if table is not None and isinstance(table.value, dict):
        return dict(table.value)
    rows = tried.get("curator_variables")
    return (
        {each.need("name").text(): each.need("value").value for each in rows.list()} if rows else {}
    )


def _template(params: Node, kind: str, used: list[str]) -> str:
    """The request as JSON text, with karat's placeholders."""
    text = params.text()
    if kind == "solr" and not text.lstrip().startswith("{"):
        return _solr(text, _renamer(params, used))
    rename = _renamer(params, used)
    strings: list[str] = []

    def keep(match: re.Match[str]) -> str:
        strings.append(_VARIABLE.sub(rename, match[0]))
        return f"\0{len(strings) - 1}\0"

    # A variable outside a string is a number, which a string of only a placeholder becomes.
    bare = _VARIABLE.sub(lambda match: f'"{rename(match)}"', _STRING.sub(keep, text))
    text = re.sub("\0(\\d+)\0", lambda match: strings[int(match[1])], bare)
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        raise params.wrong("JSON with variables of Quepid") from None


def _renamer(params: Node, used: list[str]) -> Callable[[re.Match[str]], str]:
    def rename(match: re.Match[str]) -> str:
        if match[2] and match[2].isidentifier():
            used.append(match[2])
            return f"{{params.{match[2]}}}"
        if match[1] == "query":
            return "{query}"
        if (match[1] or "").startswith("qOption"):
            fix = "{filters.NAME} is a column of the queries: write it into the case's template"
        else:
            fix = "write {query}, which is the whole query, into the case's template"
        raise InputError(
            f"the template uses {match[0]}, for which karat has no placeholder",
            file=params.file,
            fix=fix,
        )

    return rename


def _solr(text: str, rename: Callable[[re.Match[str]], str]) -> str:
    """Parameters of a Solr address as a JSON request."""
    request: dict[str, Any] = {"query": "{query}", "params": {}}
    for name, given in parse_qsl("&".join(text.split("\n")), keep_blank_values=True):
        value = _VARIABLE.sub(rename, given.strip())
        if name.strip() == "q":
            request["query"] = value
        elif name.strip() not in {"rows", "start", "fl", "wt", "indent"}:
            before = request["params"].get(name.strip())
            several = [*before, value] if isinstance(before, list) else [before, value]
            request["params"][name.strip()] = value if before is None else several
    return json.dumps(request, indent=2, ensure_ascii=False)


def _toml(name: str, settings: dict[str, Any], template: str) -> str:
    quoted = f"'''\n{template}'''" if "'''" not in template else json.dumps(template)
    params = settings.pop("params")
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    if params:
        pairs = (f"{key} = {json.dumps(value)}" for key, value in params.items())
        lines.append(f"params = {{ {', '.join(pairs)} }}")
    if template:
        lines.append(f"template = {quoted}")
    return "\n".join([f"[engine.{name}]", *lines]) + "\n"


def _notes(endpoint: Node, address: Node) -> Iterator[str]:
    names = ("basic_auth_credential", "custom_headers")
    secret = any(_text(endpoint, name).strip("{} ") for name in names)
    if secret or urlsplit(address.text()).username:
        yield (
            "headers and credentials were left out: "
            'headers = { Authorization = { env = "SEARCH_TOKEN" } }'
        )
    if _text(endpoint, "search_engine") == "searchapi":
        yield (
            "the mapper's code was left out: set hits, id and title to where it reads them, as in "
            'hits = "$.response.docs[*]"'
        )
