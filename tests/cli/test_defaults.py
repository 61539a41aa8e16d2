"""Defaults in karat.toml: used where no option is given, and never by trec_eval's formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Typed

QRELS = "1 0 a 2\n1 0 b 1\n2 0 a 1\n"
RUN = "1 Q0 a 1 3 r\n1 Q0 x 2 2 r\n2 Q0 y 1 3 r\n2 Q0 a 2 1 r\n"
OTHER = "1 Q0 x 1 3 s\n1 Q0 a 2 2 s\n2 Q0 y 1 3 s\n2 Q0 a 2 1 s\n"
DEFAULTS = """\
[defaults]
measures = ["P@1", "R@100"]
by = ["kind"]
scale = [0, 3]
fully_judged = true
"""


@pytest.fixture(autouse=True)
def below(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder below that of karat.toml, which has nothing but defaults."""
    (tmp_path / "karat.toml").write_text(DEFAULTS)
    folder = tmp_path / "below"
    folder.mkdir()
    for name, text in (("q.txt", QRELS), ("r.trec", RUN), ("s.trec", OTHER)):
        (folder / name).write_text(text)
    (folder / "queries.csv").write_text("query_id,text,kind\n1,x,news\n2,y,shop\n")
    monkeypatch.chdir(folder)


def test_evaluate_uses_them_and_says_so_in_one_line(typed: Typed) -> None:
    done = typed("evaluate q.txt r.trec --queries queries.csv -f json")
    found = json.loads(done.out)
    assert [row["measure"] for row in found["results"]] == ["P@1", "R@100"]
    assert {row["attribute"] for row in found["slices"]} == {"kind"}
    assert found["fully_judged"] is True
    assert done.err == (
        "karat: defaults of ../karat.toml: measures P@1, R@100; by kind; scale 0-3; fully judged\n"
    )


def test_an_option_wins(typed: Typed) -> None:
    done = typed(
        "evaluate q.txt r.trec -m RR@10 --by first_relevant --scale 0-4 --no-fully-judged -f json"
    )
    found = json.loads(done.out)
    assert {row["measure"] for row in found["results"]} == {"RR@10"}
    assert {row["attribute"] for row in found["slices"]} == {"first_relevant"}
    assert "fully_judged" not in found
    assert "any grade from 0 to 4" in " ".join(found["notes"])
    assert done.err == ""
    # Bounds are of unjudged documents, so whoever asks for them has not declared that.
    assert "fully judged" not in typed("evaluate q.txt r.trec --bounds").err


def test_what_these_files_do_not_have_is_left_out(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "karat.toml").write_text(DEFAULTS.replace("[0, 3]", '"0-1"'))
    done = typed("evaluate q.txt r.trec")
    assert done.err.endswith(
        "not used: by kind (these queries have no such attribute), "
        "scale 0-1 (grade 2 of document a is not on the scale 0 to 1)\n"
    )


def test_a_scale_that_the_judgments_carry_wins(typed: Typed, tmp_path: Path) -> None:
    golden = {
        "karat_golden_set": 1,
        "name": "g",
        "scale": [0, 2],
        "queries": [{"query_id": "2", "query": "x", "relevant_docs": {"a": 2}}],
    }
    (tmp_path / "below" / "g.json").write_text(json.dumps(golden))
    done = typed("evaluate g.json r.trec --no-fully-judged -m nDCG@10")
    assert "scale" not in done.err
    assert "any grade from 0 to 2" in " ".join(done.out.split())


def test_trec_eval_s_output_does_not_change(typed: Typed, tmp_path: Path) -> None:
    lines = ("evaluate q.txt r.trec --compat trec_eval-9", "evaluate q.txt r.trec -f trec")
    with_defaults = [typed(line) for line in lines]
    (tmp_path / "karat.toml").unlink()
    assert with_defaults == [typed(line) for line in lines]


def test_compare_uses_all_and_a_gate_the_scale_and_the_declaration(
    typed: Typed, tmp_path: Path
) -> None:
    done = typed("compare q.txt r.trec s.trec --queries queries.csv -f json")
    found = json.loads(done.out)
    assert [row["measure"] for row in found["differences"]] == ["P@1", "R@100"]
    assert found["settings"]["fully_judged"] is True
    policy = tmp_path / "gate.toml"
    policy.write_text('[[rule]]\nmeasure = "R@100"\nmax_drop = 0.1\n')
    line = "gate --policy ../gate.toml q.txt r.trec s.trec -f json"
    done = typed(line)
    assert json.loads(done.out)["fully_judged"] is True
    assert done.err == "karat: defaults of ../karat.toml: scale 0-3; fully judged\n"
    policy.write_text(policy.read_text() + "[health]\nmin_judged = 0.5\n")
    done = typed(line)
    assert json.loads(done.out)["fully_judged"] is False
    assert done.err == "karat: defaults of ../karat.toml: scale 0-3\n"


@pytest.mark.parametrize(
    ("now", "line", "what"),
    [
        ('measures = ["nDGC@3"]', 2, "unknown measure 'nDGC'; did you mean nDCG"),
        ("measures = 3", 2, "[defaults] measures is 3, not a list of strings"),
        ('measure = ["P@1"]', 2, "[defaults] unknown key 'measure'"),
        ('by = []\nscale = "x"', 3, "[defaults] scale: 'x' is not a scale"),
        ("by = []\nscale = 3", 3, "[defaults] scale is 3, not a scale"),
        ('by = []\n\nfully_judged = "yes"', 4, "not true or false"),
    ],
)
def test_a_mistake_names_file_line_and_key(
    typed: Typed, tmp_path: Path, now: str, line: int, what: str
) -> None:
    (tmp_path / "karat.toml").write_text(f"[defaults]\n{now}\n")
    done = typed("evaluate q.txt r.trec", code=2)
    assert f"karat.toml, line {line}: " in done.err
    assert what in done.err
