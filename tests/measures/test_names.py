"""Names of measures: read in many spellings, printed one way, and refused with a way out."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.measures import DEFAULTS, parse, parse_all
from karat.measures.names import trec_name
from karat.measures.trec import ORDER, in_trec_order


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        # karat's own, without regard to case
        ("nDCG@10", "nDCG@10"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG @ 10", "nDCG@10"),
        ("ap", "AP"),
        ("rr@10", "RR@10"),
        ("P(rel=2)@5", "P(rel=2)@5"),
        ("p( REL = 2 )@5", "P(rel=2)@5"),
        ("BPREF", "Bpref"),
        ("judged@10", "Judged@10"),
        ("success@5", "Success@5"),
        ("nDCG(gain=exp)@10", "nDCG(gain=exp)@10"),
        ("nDCG(gain={2: 9, 1: 3})@10", "nDCG(gain={1: 3, 2: 9})@10"),
        ("nDCG(discount=jk, base=2)@5", "nDCG(discount=jk, base=2)@5"),
        ("ndcg(base=10,discount=JK)", "nDCG(discount=jk, base=10)"),
        ("SetF(beta=0.5)", "SetF(beta=0.5)"),
        ("IPrec(rounding=trec9)@0.1", "IPrec(rounding=trec9)@0.1"),
        ("RprecMult@0.2", "RprecMult@0.2"),
        ("Ceiling(nDCG@10, depth=100)", "Ceiling(nDCG@10, depth=100)"),
        ("Ceiling(depth=100, of=ndcg_cut_10)", "Ceiling(nDCG@10, depth=100)"),
        ("ceiling(nDCG(gain=exp)@10, depth=5)", "Ceiling(nDCG(gain=exp)@10, depth=5)"),
        # what is the default goes unsaid
        ("P(rel=1)@5", "P@5"),
        ("nDCG(gain=linear, discount=log2)@10", "nDCG@10"),
        # ir_measures 0.4.3
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp)@10"),
        ('nDCG(dcg="exp-log2")@10', "nDCG(gain=exp)@10"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("nDCG(gains={0: 0, 1: 5})", "nDCG(gain={0: 0, 1: 5})"),
        ("AP(rel=2)@100", "AP(rel=2)@100"),
        ("IPrec@0.10", "IPrec@0.1"),
        ("Rprec(rel=2)", "Rprec(rel=2)"),
        ("NumRelRet", "NumRelRet"),
        # trec_eval
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg", "nDCG"),
        ("map", "AP"),
        ("map_cut_100", "AP@100"),
        ("recip_rank", "RR"),
        ("recip_rank@10", "RR@10"),
        ("P_5", "P@5"),
        ("P.5", "P@5"),
        ("recall_1000", "R@1000"),
        ("relative_P_10", "Rcap@10"),
        ("success_1", "Success@1"),
        ("Rprec", "Rprec"),
        ("Rprec_mult_0.20", "RprecMult@0.2"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        ("11pt_avg", "IPrec11"),
        ("gm_map", "GMAP"),
        ("gm_bpref", "GMBpref"),
        ("bpref", "Bpref"),
        ("infAP", "infAP"),
        ("set_P", "SetP"),
        ("set_recall", "SetR"),
        ("set_F", "SetF"),
        ("set_map", "SetAP"),
        ("set_relative_P", "SetRcap"),
        ("num_ret", "NumRet"),
        ("num_rel", "NumRel"),
        ("num_rel_ret", "NumRelRet"),
        ("num_nonrel_judged_ret", "NumNonrelRet"),
        ("dcg", "DCG"),
        ("ideal_dcg", "IDCG"),
        # plain words
        ("MRR", "RR"),
        ("MRR@10", "RR@10"),
        ("MAP", "AP"),
        ("Recall@100", "R@100"),
        ("Precision@5", "P@5"),
        ("HitRate@3", "Success@3"),
        ("hit@3", "Success@3"),
        # without quotes in a shell
        ("nDCG:gain=exp@10", "nDCG(gain=exp)@10"),
        ("ndcg:dcg=exp-log2@10", "nDCG(gain=exp)@10"),
        ("nDCG:gain=1=3,2=9@10", "nDCG(gain={1: 3, 2: 9})@10"),
        ("nDCG:discount=jk:base=2@5", "nDCG(discount=jk, base=2)@5"),
        ("P:rel=2@5", "P(rel=2)@5"),
        ("SetF:beta=2", "SetF(beta=2)"),
    ],
)
def test_spellings(typed: str, printed: str) -> None:
    measure = parse(typed)
    assert str(measure) == printed
    assert parse(printed) == measure
    assert hash(parse(printed)) == hash(measure)
    assert repr(measure) == f"<Measure {printed}>"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("nDGC@10", "unknown measure 'nDGC'; did you mean nDCG"),
        ("Recal@10", "did you mean Recall"),
        ("MPA", "did you mean MAP"),
        ("no measure", "'no measure' is not the name of a measure"),
        ("", "is not the name of a measure"),
        ("nDCG@", "is not the name of a measure"),
        # cutoffs
        ("P", "P needs a rank from 1\n  fix: P@10, or SetP over all documents returned"),
        ("Precision", "P needs a rank from 1\n  fix: P@10, or SetP over all documents"),
        ("recall", "R needs a rank from 1\n  fix: R@10, or SetR over all documents"),
        ("HitRate", "Success needs a rank from 1\n  fix: Success@10"),
        ("IPrec", "IPrec needs a recall level from 0 to 1\n  fix: IPrec@0.1"),
        ("RprecMult", "RprecMult needs a multiple of R above 0\n  fix: RprecMult@2"),
        ("Bpref@10", "Bpref takes no cutoff\n  fix: write Bpref"),
        ("P@0", "'0' is not a rank from 1"),
        ("P@-5", "'-5' is not a rank from 1"),
        ("P@2.5", "'2.5' is not a rank from 1"),
        ("P@ten", "'ten' is not a rank from 1"),
        ("P@nan", "'nan' is not a rank from 1"),
        ("P@inf", "'inf' is not a rank from 1"),
        ("nDCG@0", "'0' is not a rank from 1"),
        ("IPrec@1.5", "'1.5' is not a recall level"),
        ("IPrec@-0.1", "'-0.1' is not a recall level"),
        ("RprecMult@0", "'0' is not a multiple of R above 0"),
        ("P_0", "is not a rank from 1"),
        # parameters
        ("nDCG(discount=jk)@10", "discount=jk needs base"),
        ("nDCG(base=2)@10", "base is only for discount=jk"),
        ("nDCG(discount=jk, base=1)", "base=1 is not a number above 1"),
        ("nDCG(discount=ln)", "discount=ln is not log2 or jk"),
        ("nDCG(gain=cubic)", "gain=cubic is not linear, exp, or a gain for each grade"),
        ("nDCG(gain={})", "is not linear, exp, or a gain for each grade"),
        ("nDCG(gian=exp)", "nDCG has no parameter 'gian'; it takes gain, discount, base; did you"),
        ("Judged(rel=2)@5", "Judged has no parameter 'rel'; it takes none"),
        ("P(rel=2, rel=3)@5", "duplicate parameter rel"),
        ("nDCG(dcg=log2, gain=exp)", "duplicate parameter gain"),
        ("P(2)@5", "P: '2' is not a parameter"),
        ("P(rel=two)@5", "P: rel=two is not a number"),
        ("P(rel=0)@5", "P: rel=0 is not a number above 0"),
        ("P(rel=-1)@5", "rel=-1 is not a number above 0"),
        ("P(rel=nan)@5", "rel=nan is not a finite number"),
        ("SetF(beta=0)", "beta=0 is not a number above 0"),
        ("IPrec(rounding=down)@0.1", "rounding=down is not up, nearest or trec9"),
        ("Ceiling(nDCG@10)", "Ceiling needs depth"),
        ("Ceiling(depth=10)", "Ceiling needs of"),
        ("Ceiling(nDCG@10, depth=0)", "depth=0 is not a whole number from 1"),
        ("Ceiling(nDGC@10, depth=5)", "did you mean nDCG"),
        ("ndcg_cut", "expected one measure, and ndcg_cut names 9"),
    ],
)
def test_refusals_say_what_and_the_way_out(typed: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(typed)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_rel_fills_in_where_it_is_not_said() -> None:
    assert [str(m) for m in parse_all(["AP", "P(rel=3)@5", "nDCG@10"], rel=2)] == [
        "AP(rel=2)",
        "P(rel=3)@5",
        "nDCG@10",
    ]
    assert str(parse("AP", rel=0.5)) == "AP(rel=0.5)"
    assert str(parse("AP", rel=1)) == "AP"


def test_rel_reaches_the_measure_inside_a_ceiling() -> None:
    assert str(parse("Ceiling(AP, depth=10)", rel=2)) == "Ceiling(AP(rel=2), depth=10)"
    assert str(parse("Ceiling(AP(rel=3), depth=10)", rel=2)) == "Ceiling(AP(rel=3), depth=10)"


@pytest.mark.parametrize("rel", [0, -1, float("nan"), float("inf")])
def test_rel_from_outside_is_checked_too(rel: float) -> None:
    with pytest.raises(UsageError, match="rel"):
        parse("AP", rel=rel)


def test_each_measure_once_in_the_order_first_named() -> None:
    names = ["AP", "nDCG@10", "map", "ndcg_cut_10", "P.5,10", "P@5"]
    assert [str(measure) for measure in parse_all(names)] == ["AP", "nDCG@10", "P@5", "P@10"]


def test_the_defaults_can_be_read() -> None:
    assert tuple(str(measure) for measure in parse_all(DEFAULTS)) == DEFAULTS


def test_families_of_trec_eval_stand_for_their_cutoffs() -> None:
    # The defaults of trec_eval 9.0.8: m_ndcg_cut.c, m_P.c, m_success.c.
    cutoffs = [5, 10, 15, 20, 30, 100, 200, 500, 1000]
    assert [measure.cutoff for measure in parse_all(["ndcg_cut"])] == cutoffs
    assert [measure.cutoff for measure in parse_all(["P"], trec=True)] == cutoffs
    assert [str(m) for m in parse_all(["success"], trec=True)] == [
        "Success@1",
        "Success@5",
        "Success@10",
    ]
    # In karat's reading P is one measure, and lacks its cutoff.
    with pytest.raises(UsageError, match="needs a rank"):
        parse_all(["P"])
    # Cutoffs come ascending, as trec_eval sorts them.
    assert [str(m) for m in parse_all(["P.10,5"])] == ["P@5", "P@10"]


def test_the_official_set_is_trec_evals() -> None:
    # trec_eval 9.0.8 without -m prints these after runid ("official" in its measures.c).
    names = [trec_name(m) for m in in_trec_order(parse_all(["official"], trec=True))]
    assert names == [
        "num_q",
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "map",
        "gm_map",
        "Rprec",
        "bpref",
        "recip_rank",
        *(f"iprec_at_recall_{level / 10:.2f}" for level in range(11)),
        *(f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    ]


def test_all_trec_is_in_the_order_printed() -> None:
    measures = parse_all(["all_trec"], trec=True)
    assert in_trec_order(list(reversed(measures))) == measures
    assert {measure.entry.symbol for measure in measures} == {
        symbol.rstrip("@") for symbol in ORDER
    } - {"DCG", "IDCG"}
    for measure in measures:
        assert parse(trec_name(measure)) == measure


def test_a_measure_trec_eval_lacks_keeps_its_name_and_goes_last() -> None:
    measures = parse_all(["Judged@5", "nDCG@10", "nDCG@5", "AP"])
    assert [trec_name(m) for m in in_trec_order(measures)] == [
        "map",
        "ndcg_cut_5",
        "ndcg_cut_10",
        "Judged@5",
    ]


def test_depth_is_a_cutoff_that_is_a_rank() -> None:
    assert parse("nDCG@10").depth == 10
    assert parse("nDCG").depth is None
    assert parse("IPrec@0.1").depth is None
    assert parse("RprecMult@2").depth is None
    assert parse("AP") != "AP"


def test_an_unknown_measure_says_where_they_are_listed() -> None:
    with pytest.raises(UsageError, match="see the catalogue of measures: karat measures"):
        parse("nDGC@10")


@pytest.mark.parametrize(
    ("text", "name"),
    [("recall_at_5", "R@5"), ("Precision_at_10", "P@10"), ("hit_rate@1", "Success@1")],
)
def test_names_of_functions_are_read(text: str, name: str) -> None:
    assert str(parse(text)) == name
