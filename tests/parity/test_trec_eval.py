"""What ``--compat`` prints, line by line, against trec_eval 9.0.8 and trec_eval 10.0-rc3.

Output of the binaries on TREC 2003 Robust and on trec_eval's own test lies beside the project
(its README says how it was made). The small cases below are frozen output of the same binaries.
"""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.cli.main import main

Trec = Callable[..., list[str]]

# What trec_eval prints under -m all_trec and karat does not have: experimental measures (G, binG,
# ndcg_rel, Rndcg), utility, relevance strings (for people to read), and unjudged counts (10 only).
NOT_OURS = {
    "G",
    "Rndcg",
    "binG",
    "ndcg_rel",
    "relstring",
    "relstring_20",
    "unj_10",
    "unj_20",
    "unj_5",
    "utility",
}
ROBUST = ("NLPR03vb10", "SABIR03BASE", "aplrob03a", "rutcor03100", "uic0301")
VERSIONS = ("trec_eval-9", "trec_eval-10")


@pytest.fixture
def karat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        code = stop.value.code
        assert isinstance(code, int)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def trec(karat: Callable[..., tuple[int, str, str]]) -> Trec:
    """The lines of ``karat evaluate --compat VERSION --format trec``."""

    def run(version: str, *arguments: object) -> list[str]:
        code, out, err = karat("evaluate", "--compat", version, "--format", "trec", *arguments)
        assert code == 0, err
        return out.splitlines()

    return run


def name_of(line: str) -> str:
    return line.split("\t", maxsplit=1)[0].strip()


def expected(path: Path) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [line for line in text.splitlines() if name_of(line) not in NOT_OURS]


# Ordinarily one run by each version.
@pytest.mark.parametrize(
    ("run", "version"),
    [
        pytest.param(run, version, marks=[pytest.mark.deep] if at != by else [])
        for at, run in enumerate(ROBUST)
        for by, version in enumerate(VERSIONS)
    ],
)
def test_robust_2003(run: str, version: str, field_data: Path, trec: Trec) -> None:
    folder = field_data / "robust03"
    qrels, ranked = folder / "qrels.robust03.gz", folder / f"input.{run}.gz"
    lines = trec(version, "-q", "-c", "-m", "all_trec", qrels, ranked)
    assert lines == expected(folder / f"expected.{run}.{version}.gz")


@pytest.mark.parametrize(
    ("name", "options", "qrels", "run"),
    [
        ("default", [], "qrels.test", "results.test"),
        pytest.param("a", ["-m", "all_trec"], "qrels.test", "results.test", marks=pytest.mark.deep),
        ("aq", ["-m", "all_trec", "-q"], "qrels.test", "results.test"),
        ("aqc", ["-m", "all_trec", "-q", "-c"], "qrels.test", "results.trunc"),
        ("aqcM", ["-m", "all_trec", "-q", "-c", "-M", "100"], "qrels.test", "results.trunc"),
        ("aql", ["-m", "all_trec", "-q", "-l", "2"], "qrels.rel_level", "results.test"),
    ],
)
def test_trec_evals_own_test(
    name: str, options: list[str], qrels: str, run: str, field_data: Path, trec: Trec
) -> None:
    folder = field_data / "trec_eval"
    lines = trec("trec_eval-10", *options, folder / qrels, folder / run)
    assert lines == expected(folder / f"expected.{name}.v10")


def test_every_expected_file_is_compared(field_data: Path) -> None:
    robust = {path.name for path in (field_data / "robust03").glob("expected.*")}
    assert robust == {f"expected.{run}.{version}.gz" for run in ROBUST for version in VERSIONS}
    own = {path.name.split(".")[1] for path in (field_data / "trec_eval").glob("expected.*")}
    assert own == {"default", "a", "aq", "aqc", "aqcM", "aql"}


def test_nothing_else_is_left_out(field_data: Path, trec: Trec) -> None:
    """Every name trec_eval prints is one karat prints, or stands in the list above."""
    robust, own = field_data / "robust03", field_data / "trec_eval"
    paths = [*robust.glob("expected.*"), *own.glob("expected.*")]
    printed = set()
    for path in paths:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        printed |= {name_of(line) for line in io.StringIO(text)}
    lines = trec("trec_eval-10", "-m", "all_trec", own / "qrels.test", own / "results.test")
    ours = {name_of(line) for line in lines}
    assert printed - ours == NOT_OURS
    assert not ours - printed


# Topic 3 is not in the run, topic 4 has no relevant document, topic 9 has no judgments.
TOPICS = """\
1 0 a 1
1 0 b 0
1 0 c 2
2 0 a 0
2 0 b 1
3 0 a 2
3 0 d 1
4 0 a 0
"""
RUN = """\
1 Q0 a 1 3 t
1 Q0 b 2 2 t
1 Q0 c 3 1 t
2 Q0 x 1 3 t
2 Q0 b 2 2 t
4 Q0 a 1 1 t
9 Q0 a 1 1 t
"""
# Unjudged documents between judged ones.
HOLES = """\
1 Q0 x 1 9 t
1 Q0 a 2 8 t
1 Q0 y 3 7 t
1 Q0 b 4 6 t
1 Q0 c 5 5 t
2 Q0 x 1 3 t
2 Q0 y 2 2 t
2 Q0 b 3 1 t
3 Q0 a 1 1 t
4 Q0 a 1 1 t
"""
COUNTED = "num_q num_ret num_rel num_rel_ret map gm_map ndcg"


@pytest.fixture
def small(tmp_path: Path, trec: Trec) -> Callable[..., str]:
    """Lines of a small case, their padding squeezed out."""

    def run(
        version: str, measures: str, *options: str, qrels: str = TOPICS, ranked: str = RUN
    ) -> str:
        (tmp_path / "qrels").write_text(qrels)
        (tmp_path / "run").write_text(ranked)
        asked = [part for measure in measures.split() for part in ("-m", measure)]
        lines = trec(version, *options, *asked, tmp_path / "qrels", tmp_path / "run")
        return "".join(" ".join(line.split()) + "\n" for line in lines)

    return run


def test_9_leaves_out_topics_that_the_run_lacks(small: Callable[..., str]) -> None:
    """trec_eval 9.0.8, -q."""
    lines = """\
num_ret 1 3
num_rel 1 2
num_rel_ret 1 2
map 1 0.8333
ndcg 1 0.7602
num_ret 2 2
num_rel 2 1
num_rel_ret 2 1
map 2 0.5000
ndcg 2 0.6309
num_ret 4 1
num_rel 4 0
num_rel_ret 4 0
map 4 0.0000
ndcg 4 0.0000
num_q all 3
num_ret all 6
num_rel all 3
num_rel_ret all 3
map all 0.4444
gm_map all 0.0161
ndcg all 0.4637
"""
    assert small("trec_eval-9", COUNTED, "-q") == lines


ALL_TOPICS = """\
num_q all 4
num_ret all 6
num_rel all 5
num_rel_ret all 3
map all 0.3333
gm_map all 0.0025
ndcg all 0.3478
"""


def test_9_with_c_counts_missing_topics_and_does_not_list_them(small: Callable[..., str]) -> None:
    """trec_eval 9.0.8, -c and -q -c."""
    assert small("trec_eval-9", COUNTED, "-c") == ALL_TOPICS
    listed = small("trec_eval-9", "num_ret map", "-q", "-c")
    assert listed == (
        "num_ret 1 3\nmap 1 0.8333\nnum_ret 2 2\nmap 2 0.5000\nnum_ret 4 1\nmap 4 0.0000\n"
        "num_ret all 6\nmap all 0.3333\n"
    )


def test_10_with_c_lists_missing_topics(small: Callable[..., str]) -> None:
    """trec_eval 10.0-rc3, -c and -q -c."""
    assert small("trec_eval-10", COUNTED, "-c") == ALL_TOPICS
    listed = small("trec_eval-10", "num_rel map", "-q", "-c")
    assert listed == (
        "num_rel 1 2\nmap 1 0.8333\nnum_rel 2 1\nmap 2 0.5000\nnum_rel 3 2\nmap 3 0.0000\n"
        "num_rel 4 0\nmap 4 0.0000\nnum_rel all 5\nmap all 0.3333\n"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_c_forgets_l_in_num_rel(version: str, small: Callable[..., str]) -> None:
    """trec_eval 9.0.8 and 10.0-rc3, -c -l2: two documents have grade 2, and num_rel says 5.

    m_num_rel.c counts every grade from 1 when it fills in the missing topics.
    """
    lines = """\
num_q all 4
num_ret all 6
num_rel all 5
num_rel_ret all 1
map all 0.0833
gm_map all 0.0001
ndcg all 0.3478
"""
    assert small(version, COUNTED, "-c", "-l", "2") == lines
    topics = {"trec_eval-9": "124", "trec_eval-10": "1234"}[version]
    per_topic = dict(zip("1234", "1010", strict=True))  # grade 2: one in 1, one in 3
    expected = [f"num_rel {topic} {per_topic[topic]}" for topic in topics]
    listed = small(version, "num_rel", "-q", "-c", "-l", "2").splitlines()
    assert listed == [*expected, "num_rel all 5"]


def test_10_aborts_where_a_topic_is_missing_and_prints_nothing(
    karat: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """trec_eval 10.0-rc3 prints topics 1 and 2, then "result qid '3' not found", exit 4."""
    (tmp_path / "qrels").write_text(TOPICS)
    (tmp_path / "run").write_text(RUN)
    code, out, err = karat(
        "evaluate", "--compat", "trec_eval-10", "-q", "-f", "trec",
        tmp_path / "qrels", tmp_path / "run",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert "trec_eval 10 aborts here (exit 4)" in err
    assert "3 is missing; karat prints no partial results" in err
    assert "--complete" in err
    assert "trec_eval-9" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("version", VERSIONS)
def test_j_drops_unjudged_documents_after_m_has_cut(
    version: str, small: Callable[..., str]
) -> None:
    """trec_eval 9.0.8 and 10.0-rc3, -q -J -M3."""
    lines = """\
num_ret 1 1
map 1 0.5000
P_5 1 0.2000
ndcg 1 0.3801
num_ret 2 1
map 2 1.0000
P_5 2 0.2000
ndcg 2 1.0000
num_ret 3 1
map 3 0.5000
P_5 3 0.2000
ndcg 3 0.7602
num_ret 4 1
map 4 0.0000
P_5 4 0.0000
ndcg 4 0.0000
num_ret all 4
map all 0.5000
P_5 all 0.1500
ndcg all 0.5351
"""
    options = ("-q", "-J", "-M", "3")
    assert small(version, "num_ret map P.5 ndcg", *options, ranked=HOLES) == lines


@pytest.mark.parametrize(
    ("version", "eleven"), [("trec_eval-9", "0.5227"), ("trec_eval-10", "0.6136")]
)
def test_recall_levels_are_rounded_by_version(
    version: str, eleven: str, small: Callable[..., str]
) -> None:
    """trec_eval 9.0.8 and 10.0-rc3, -J -M3."""
    lines = small(version, "iprec_at_recall.0.0,0.5 11pt_avg", "-J", "-M", "3", ranked=HOLES)
    assert lines == (
        f"iprec_at_recall_0.00 all 0.7500\niprec_at_recall_0.50 all 0.7500\n11pt_avg all {eleven}\n"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_one_known_difference(version: str, small: Callable[..., str]) -> None:
    """Topic 2 keeps no judged document under -J -M2.

    trec_eval 9.0.8 and 10.0-rc3 print "-nan" for its interpolated precision (0/0), and for the
    mean over all topics; karat counts the topic as 0, as trec_eval itself does in every other
    measure.
    """
    lines = small(version, "map iprec_at_recall.0.0", "-q", "-J", "-M", "2", ranked=HOLES)
    assert lines.splitlines()[2:4] == ["map 2 0.0000", "iprec_at_recall_0.00 2 0.0000"]
    # Topics 1 and 3 have a relevant document at the top: (1 + 0 + 1 + 0) / 4.
    assert lines.splitlines()[-1] == "iprec_at_recall_0.00 all 0.5000"


TIED = """\
1 Q0 c 1 1.000000002 t
1 Q0 a 2 1.000000001 t
1 Q0 z 3 1.000000000 t
"""


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        # All three are 1 in float32, so the order is z, c, a: by document id, descending.
        ("trec_eval-9", "map all 0.5833\nrecip_rank all 0.5000\n"),
        ("trec_eval-10", "map all 1.0000\nrecip_rank all 1.0000\n"),
    ],
)
def test_scores_that_only_float32_makes_tie(
    version: str, lines: str, small: Callable[..., str]
) -> None:
    """trec_eval 9.0.8 keeps scores as float, trec_eval 10.0-rc3 as double."""
    qrels = "1 0 a 1\n1 0 b 0\n1 0 c 2\n"
    assert small(version, "map recip_rank", qrels=qrels, ranked=TIED) == lines


@pytest.mark.parametrize("version", VERSIONS)
def test_grades_below_0(version: str, small: Callable[..., str]) -> None:
    """trec_eval 9.0.8 and 10.0-rc3: pooled (infAP counts them), and not judged (bpref does not)."""
    qrels = "1 0 a 1\n1 0 b -1\n1 0 c 0\n1 0 d -2\n1 0 e 2\n"
    ranked = "".join(
        f"1 Q0 {doc} {rank} {9 - rank} t\n" for rank, doc in enumerate("baxcde", start=1)
    )
    lines = """\
num_ret all 6
map all 0.4167
bpref all 0.5000
infAP all 0.6250
ndcg all 0.5106
num_nonrel_judged_ret all 1
"""
    measures = "num_ret map bpref infAP ndcg num_nonrel_judged_ret"
    assert small(version, measures, qrels=qrels, ranked=ranked) == lines


@pytest.mark.parametrize("version", VERSIONS)
def test_a_level_that_no_grade_reaches_scores_0(version: str, small: Callable[..., str]) -> None:
    """trec_eval 9.0.8 and 10.0-rc3, -c -l3: no error, all 0 (num_rel as above)."""
    lines = small(version, "num_rel num_rel_ret map", "-c", "-l", "3")
    assert lines == "num_rel all 5\nnum_rel_ret all 0\nmap all 0.0000\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_fractions_are_cut_to_whole_grades(
    version: str, karat: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """trec_eval 9.0.8 and 10.0-rc3 (atol): 0.9 and -0.5 count as 0, 1.9 as 1."""
    (tmp_path / "qrels").write_text("1 0 a 0.9\n1 0 b 1.9\n1 0 c -0.5\n2 0 b 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 3 t\n1 Q0 b 2 2 t\n1 Q0 c 3 1 t\n")
    code, out, err = karat(
        "evaluate", "--compat", version, "-c", "-f", "trec",
        "-m", "num_rel", "-m", "map", "-m", "num_nonrel_judged_ret",
        tmp_path / "qrels", tmp_path / "run",
    )  # fmt: skip
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert (code, lines) == (0, ["num_rel all 2", "map all 0.2500", "num_nonrel_judged_ret all 2"])
    assert "0.9 counts as 0" in err
    assert "below 0" not in err
