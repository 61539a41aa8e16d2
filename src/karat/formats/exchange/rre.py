"""RRE's ratings: topics, groups of queries, queries, and their relevant documents.

Topics and groups are optional. Documents belong to the group or the query, in three forms:
``{DOC: {"gain": 3}}``, ``{"3": [DOC]}`` and a list of the first
(``rre-core/src/main/java/io/sease/rre/core/Engine.java``). Quepid writes the first and reads the
second; RRE reads both, so karat writes the second.
"""

from __future__ import annotations

import json
from typing import Any

from karat.formats.exchange.export import Export, dumped, unpacked
from karat.formats.exchange.import_ import ImportBuilder
from karat.formats.exchange.source_file import Node, SourceFile, number

GAIN = 2.0  # the gain that RRE's nDCG assumes for a document without one
_TEXT = "$query"


def read(gathered: ImportBuilder, foreign: SourceFile) -> None:
    gather(gathered, foreign.json())


def gather(gathered: ImportBuilder, root: Node) -> None:
    below = ("topics", "query_groups", "queries")
    if not any(root.has(key) for key in below):
        root.need("topics")
    gathered.leave(root, (*below, "relevant_documents"), "the file")
    for topic in root.each("topics"):
        gathered.leave(topic, (*below, "description", "name", "relevant_documents"), "a topic")
        name = topic.get("description") or topic.get("name")
        _groups(gathered, topic, name.text() if name else None)
    _groups(gathered, root, None)


def _groups(gathered: ImportBuilder, node: Node, topic: str | None) -> None:
    for group in node.each("query_groups"):
        known = ("name", "description", "template", "queries", "relevant_documents")
        gathered.leave(group, (*known[:1], *known[2:]), "a group")
        name = group.get("name")
        _queries(gathered, group, topic, name.text() if name else None)
    _queries(gathered, node, topic, None)


def _queries(gathered: ImportBuilder, node: Node, topic: str | None, group: str | None) -> None:
    shared = node.get("relevant_documents")
    template = node.get("template") if group is not None else None
    for item in node.each("queries"):
        gathered.leave(item, ("template", "placeholders", "relevant_documents"), "a query")
        placeholders = item.need("placeholders")
        others = {key: value for key, value in placeholders.items() if key != _TEXT}
        own = placeholders.get(_TEXT)
        if own is None:
            if len(others) != 1:
                raise placeholders.wrong(f'an object with "{_TEXT}"')
            key, own = others.popitem()
            gathered.lose(f"the name of the placeholder {key}")
        template_node = item.get("template") or template
        placeholder_values = {key: value.value for key, value in others.items()}
        query = gathered.entry(
            own.text(),
            topic=topic,
            group=group,
            template=template_node.text() if template_node else None,
            placeholders=json.dumps(placeholder_values, ensure_ascii=False)
            if placeholder_values
            else None,
        )
        documents = item.get("relevant_documents") or shared
        if documents is not None:
            _documents(gathered, query, documents)


def _documents(gathered: ImportBuilder, query: str, node: Node) -> None:
    if isinstance(node.value, list):
        for member in node.list():
            if isinstance(member.value, str):
                _without_gain(gathered, query, member.value, member)
            else:
                _documents(gathered, query, member)
        return
    for key, value in node.items():
        if not key.strip():
            raise value.wrong("the gain of a document: its id is empty")
        if isinstance(value.value, list):
            gain = number(key)
            if gain is None:
                raise value.wrong(f"the documents of a gain: {key!r} is not a number")
            for doc in value.list():
                gathered.judge(query, doc.identifier(), gain, node=doc)
        elif isinstance(value.value, int | float | str) and not isinstance(value.value, bool):
            gathered.judge(query, key, value.number(), node=value)
        elif value.value is None:
            _without_gain(gathered, query, key, value)
        else:
            gathered.leave(value, ("gain", "rating"), "a document")
            gain_node = value.get("gain") or value.get("rating")
            if gain_node is None:
                _without_gain(gathered, query, key, value)
            else:
                gathered.judge(query, key, gain_node.number(), node=gain_node)


def _without_gain(gathered: ImportBuilder, query: str, doc: str, node: Node) -> None:
    note = f"documents without a gain have grade {GAIN:g}, as in RRE's nDCG"
    if note not in gathered.assumed:
        gathered.assumed.append(note)
    gathered.judge(query, doc, GAIN, node=node)


def write(leaving: Export) -> bytes:
    """A ratings file; with topics and groups if the queries have these columns."""
    out: dict[str, Any] = {"id_field": "id", "index": "index", "corpora_file": "corpus.json"}
    leaving.assumed.append(
        "id_field, index, corpora_file and the name of the template: replace them by yours"
    )
    tree: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for query in leaving.texts:
        row = leaving.queries[query]
        topic, group = str(row.get("topic") or ""), str(row.get("group") or "")
        tree.setdefault(topic, {}).setdefault(group, []).append(_query(leaving, query))
    if set(tree) == {""} and set(tree[""]) == {""}:
        return dumped({**out, "queries": tree[""][""]})
    topics = []
    for topic, groups in tree.items():
        topic_object: dict[str, Any] = {"description": topic} if topic else {}
        # RRE ignores queries next to groups, so queries without a group form one without a name.
        if set(groups) == {""}:
            topic_object["queries"] = groups[""]
        else:
            topic_object["query_groups"] = [
                {"name": name, "queries": of} if name else {"queries": of}
                for name, of in groups.items()
            ]
        topics.append(topic_object)
    return dumped({**out, "topics": topics})


def _query(leaving: Export, query: str) -> dict[str, Any]:
    row = leaving.queries[query]
    more = unpacked(row.get("placeholders"))
    by_gain: dict[str, list[str]] = {}
    for doc, grade in leaving.grades(query):
        by_gain.setdefault(str(grade), []).append(doc)
    return {
        "template": row.get("template") or "query.json",
        "placeholders": {_TEXT: leaving.texts[query], **(more if isinstance(more, dict) else {})},
        "relevant_documents": by_gain,
    }
