"""Explanations as the documentation of the engines prints them, shortened to what is read."""

from __future__ import annotations

import pytest

from karat.engines.search.explanations import parts_of


def node(value, description, *details):
    return {"value": value, "description": description, "details": list(details)}


def weight(term, value):
    score = node(value, "score(freq=1.0), computed as boost * idf * tf from:", node(2.2, "boost"))
    return node(value, f"weight({term} in 12) [PerFieldSimilarity], result of:", score)


def test_terms_of_a_sum_are_its_parts():
    tree = node(3.5, "sum of:", weight("title:red", 1.5), weight("title:shoes", 2.0))
    assert parts_of(tree) == {"title:red": 1.5, "title:shoes": 2.0}


def test_the_fields_of_a_maximum_and_one_wrapped_node_are_opened():
    tree = node(2.0, "max plus 0.3 times others of:", weight("title:red", 2.0))
    assert parts_of(node(2.0, "whole score", tree)) == {"title:red": 2.0}


def test_a_single_weight_is_its_own_part():
    assert parts_of(weight("body:blue", 0.7)) == {"body:blue": 0.7}


def test_a_hybrid_of_opensearch_has_the_normalised_score_of_each_query():
    # "Hybrid search explain" of OpenSearch 3, its numbers.
    horse = node(1.0, "min_max normalization of:", weight("text:horse", 1.2336599))
    near = node(0.8503647, "min_max normalization of:", node(0.015177966, "within top 5"))
    tree = node(0.9251075, "arithmetic_mean combination of:", horse, near)
    assert parts_of(tree) == {"text:horse": 1.0, "within top 5": 0.8503647}


def test_rrf_of_elasticsearch_has_the_rank_in_each_retriever():
    # "Reciprocal rank fusion" of Elasticsearch 9: its explanation of document 3.
    head = (
        "rrf score: [0.8333334] computed for initial ranks [2, 1] with rankConstant: [1] as sum of "
        "[1 / (rank + rankConstant)] for each query"
    )
    first = (
        "rrf score: [0.33333334], for rank [2] in query at index [0] computed as [1 / (2 + 1]), "
    )
    second = "rrf score: [0.5], for rank [1] in query [my_knn_query] computed as [1 / (1 + 1]), "
    tree = node(
        0.8333334,
        head,
        node(2, first + "for matching query with score: ", weight("text:rrf", 0.5)),
        node(1, second + "for matching query with score: ", node(1.0, "within top k documents")),
    )
    assert parts_of(tree) == {"rank in query 1": 2.0, "rank in my_knn_query": 1.0}


@pytest.mark.parametrize("damaged", [None, [], "1.5", {}, {"value": "x"}, {"value": True}])
def test_what_is_no_explanation_has_no_parts(damaged):
    assert parts_of(damaged) == {}


def test_what_is_not_understood_keeps_its_own_words():
    assert parts_of(node(1.5, "a new kind of score")) == {"a new kind of score": 1.5}
