"""What a score is made of, from the explanations of Lucene (Elasticsearch, OpenSearch, Solr).

An explanation is a tree of ``value``, ``description`` and ``details``. Descriptions are prose that
changes between versions: those that are not understood are parts under their own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SUMS = re.compile(
    r"(?:sum|max) of:|max plus .* times others of:|function score|arithmetic_mean combination of:"
    r"|product of:|.*\bwith rankConstant\b|1/\(|score\(.*\), product"
)
_WEIGHT = re.compile(r"weight\((?:.*:)?(.+?) in \d+\)")
_FIELD = re.compile(r"weight\(([^\s()]+) in \d+\)")
_QUERY = re.compile(r"for rank \[(\d+)\] in query (?:at index \[(\d+)\]|\[(.+?)\])")
_LONGEST = 80  # characters of a description that is not understood
_MOST = 50  # parts of a score


def parts_of(explanation: Any) -> dict[str, float]:
    """The parts of a score by name, such as ``title:shoes``; several of one name are added."""
    found: dict[str, float] = {}
    for name, value in _parts(explanation):
        if name in found or len(found) < _MOST:
            found[name] = found.get(name, 0.0) + value
    return found


def _parts(node: Any) -> Iterator[tuple[str, float]]:
    if not isinstance(node, Mapping):
        return
    text = str(node.get("description", "")).strip()
    inside = node.get("details") or []
    value = node.get("value")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if weight := _FIELD.match(text) or _WEIGHT.match(text):
        yield weight[1], float(value)
    elif rank := _QUERY.search(text):
        yield f"rank in {rank[3] or 'query ' + str(int(rank[2]) + 1)}", float(rank[1])
    elif inside and text.endswith("normalization of:"):  # of a sub-query, known by its terms
        names = dict.fromkeys(name for each in inside for name, _ in _parts(each))
        yield " + ".join(names)[:_LONGEST], float(value)
    elif inside and _SUMS.match(text):
        for each in inside:
            yield from _parts(each)
    elif len(inside) == 1 and inside[0].get("value") == value:
        yield from _parts(inside[0])
    else:
        yield text[:_LONGEST] or "score", float(value)
