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
}
_VARIABLE = re.compile(r"#\$(\w+)##|##(\w+)##")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def engine_of_case(path: Path) -> tuple[str, list[str]]:
    """``[engine.NAME]`` as TOML, and notes on what was left out."""
    try:
        data = path.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    root = Node(parsed(data, str(path), 1), "", str(path))
    tried = root.need("try")
    endpoint = tried.get("search_endpoint") or tried  # a part of the try before Quepid 8
    engine = endpoint.need("search_engine")
    if engine.text() not in _KINDS:
        raise engine.wrong(
            "es, os or solr", 'declare it in karat.toml: kind = "http", with hits and id'
        )
    kind = _KINDS[engine.text()]
    address = endpoint.get("endpoint_url") or endpoint.need("search_url")
    base, index = _place(address)
    settings: dict[str, Any] = {"kind": kind, "url": base, "index": index}
    settings |= _fields(_text(tried, "field_spec"))
    used: list[str] = []
    template = _template(tried.need("query_params"), kind, used)
    given = _variables(tried)
    if missing := [name for name in used if name not in given]:
        raise InputError(f"the variable ##{missing[0]}## has no value", file=str(path))
    settings["params"] = {name: given[name] for name in dict.fromkeys(used)}
    name = re.sub(r"\W+", "-", _text(root, "case_name").lower()).strip("-")[:64] or "quepid"
    return _toml(name, settings, template), list(_notes(endpoint, address))


def _text(node: Node, key: str) -> str:
    found = node.get(key)
    return "" if found is None or found.value is None else found.text()


def _place(address: Node) -> tuple[str, str]:
    """The engine's address without credentials, and the index."""
    parts = urlsplit(address.text())
    folders = [folder for folder in parts.path.split("/") if folder]
    if folders and folders[-1] in {"_search", "select", "query"}:
        folders.pop()
    if parts.scheme not in {"http", "https"} or not parts.hostname or not folders:
        raise address.wrong("an address that names an index")
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return "/".join([f"{parts.scheme}://{host}", *folders[:-1]]), folders[-1]


def _fields(spec: str) -> dict[str, str]:
    """``id`` and ``title`` of a field specification such as ``id:_id, title:name``."""
    named = dict(part.strip().split(":", 1) for part in spec.split(",") if ":" in part)
    found = {"id": named.get("id", ""), "title": named.get("title", "")}
    return {key: value for key, value in found.items() if value and value != "_id"}


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
        if match[2]:
            used.append(match[2])
            return f"{{params.{match[2]}}}"
        if match[1] != "query":
            raise InputError(
                f"the template uses #${match[1]}##, for which karat has no placeholder",
                file=params.file,
                fix="write {query}, which is the whole query, into the case's template",
            )
        return "{query}"

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
    return "\n".join([f"[engine.{name}]", *lines, f"template = {quoted}"]) + "\n"


def _notes(endpoint: Node, address: Node) -> Iterator[str]:
    names = ("basic_auth_credential", "custom_headers")
    secret = any(_text(endpoint, name).strip("{} ") for name in names)
    if secret or urlsplit(address.text()).username:
        yield (
            "headers and credentials were left out: "
            'headers = { Authorization = { env = "SEARCH_TOKEN" } }'
        )
    if _text(endpoint, "mapper_code"):
        yield "the mapper's code was left out"
