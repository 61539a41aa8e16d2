"""trec_eval's view of the measures: its order and its named sets."""

from __future__ import annotations

from karat.measures import parse, parse_all
from karat.measures.names import trec_name
from karat.measures.trec import COMPAT, as_in, in_trec_order, named_set

# As trec_eval 9.0.8 prints them without -m.
OFFICIAL = [
    "num_q",
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "map",
    "gm_map",
    "Rprec",
    "bpref",
    "recip_rank",
    "iprec_at_recall_0.00",
    "iprec_at_recall_0.10",
    "iprec_at_recall_0.20",
    "iprec_at_recall_0.30",
    "iprec_at_recall_0.40",
    "iprec_at_recall_0.50",
    "iprec_at_recall_0.60",
    "iprec_at_recall_0.70",
    "iprec_at_recall_0.80",
    "iprec_at_recall_0.90",
    "iprec_at_recall_1.00",
    "P_5",
    "P_10",
    "P_15",
    "P_20",
    "P_30",
    "P_100",
    "P_200",
    "P_500",
    "P_1000",
]


def test_official_is_what_trec_eval_prints_without_m() -> None:
    official = parse_all(["official"], trec=True)
    assert [trec_name(measure) for measure in in_trec_order(official)] == OFFICIAL
    assert len(named_set("official")) == len(OFFICIAL)


def test_all_trec_holds_official_and_each_measure_once() -> None:
    names = [trec_name(measure) for measure in parse_all(["all_trec"], trec=True)]
    assert set(OFFICIAL) < set(names)
    assert len(set(names)) == len(names)


def test_measures_are_printed_in_trec_evals_order_whatever_was_asked_first() -> None:
    # trec_eval 9.0.8 -m ndcg_cut.10,5 -m ndcg -m P.10,5 -m map
    asked = parse_all(["ndcg_cut.10,5", "ndcg", "P.10,5", "map", "Judged@10"], trec=True)
    names = [trec_name(measure) for measure in in_trec_order(asked)]
    assert names == ["map", "P_5", "P_10", "ndcg", "ndcg_cut_5", "ndcg_cut_10", "Judged@10"]


def test_recall_levels_are_rounded_as_the_version_does() -> None:
    measure = parse("IPrec@0.5")
    assert as_in(COMPAT["trec_eval-9"], measure).settings["rounding"] == "trec9"
    assert as_in(COMPAT["trec_eval-10"], measure).settings["rounding"] == "nearest"
    other = parse("AP")
    assert as_in(COMPAT["trec_eval-9"], other) is other
