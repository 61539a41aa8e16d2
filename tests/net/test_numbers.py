"""The comparison of expected texts by their numbers and keys."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.net.facts import facts_of
from tests.net.numbers import changed
from tests.net.snapshots import LONGEST, Snapshots, shortened

TABLE = "$ karat evaluate a b\n\n run   nDCG@10   95 %\n old     0.594   −0.016 to +0.056\n"
PRINTED = {"measure": "nDCG@10", "value": 0.5, "note": "12 queries lack judgments", "none": None}


def output(printed: object, said: str = "3 notes") -> str:
    body = json.dumps(printed, indent=1)
    return f"$ karat compare\n{body}\n--- standard error\n{said}\n--- exit code 0\n"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (TABLE, TABLE.replace(" run ", " system ").replace("to", "bis"), True),
        (TABLE, TABLE.replace("0.594", "0.595"), False),
        (TABLE, TABLE.replace("−0.016", "+0.016"), False),
        (TABLE, TABLE.replace("0.594", "0.5940"), False),
        (output(PRINTED), output({**PRINTED, "note": "12 queries have no judgments"}), True),
        (output(PRINTED), output({**PRINTED, "note": "13 queries lack judgments"}), False),
        (output(PRINTED), output({**PRINTED, "value": 0.25}), False),
        (output(PRINTED), output({**PRINTED, "measure": "nDCG@5"}), False),
        (output(PRINTED), output({**PRINTED, "none": False}), False),
        (output(PRINTED), output({"metric": 1, **PRINTED}), False),
        (output(PRINTED), output({k: v for k, v in PRINTED.items() if k != "none"}), False),
        (output(PRINTED), output(PRINTED, "3 remarks"), True),
        (output(PRINTED), output(PRINTED, "4 notes"), False),
    ],
)
def test_words_may_change_and_numbers_may_not(old: str, new: str, same: bool) -> None:
    assert (facts_of(old) == facts_of(new)) == same


def test_of_a_long_text_that_is_cut_too() -> None:
    lines = [f"the value of query q{n} is 0.{n}" for n in range(LONGEST // 10)]
    text, words = "\n".join(lines), "\n".join(lines).replace("value", "number")
    last = f"{text[:-1]}{(int(text[-1]) + 1) % 10}"
    assert len(shortened(text)) < LONGEST / 2
    assert shortened(text) != shortened(words)
    cut = [shortened(each).rpartition("keys:")[2] for each in (text, words, last)]
    assert cut[0] == cut[1] != cut[2]


def test_what_changed_since_a_revision(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    kept = tmp_path / "expected/sub"
    kept.mkdir(parents=True)
    for name in ("words", "number", "gone"):
        (kept / f"{name}.txt").write_text(TABLE)
    (kept / "key.json").write_text(output(PRINTED))
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert changed(tmp_path, "expected", "HEAD") == []
    (kept / "words.txt").write_text(TABLE.replace("run", "system"))
    assert changed(tmp_path, "expected", "HEAD") == []
    (kept / "number.txt").write_text(TABLE.replace("0.594", "0.614"))
    (kept / "key.json").write_text(output(PRINTED).replace('"none"', '"nothing"'))
    (kept / "gone.txt").unlink()
    (kept / "new.txt").write_text(TABLE)
    gone, key, new, number = sorted(changed(tmp_path, "expected", "HEAD"))
    assert gone == "expected/sub/gone.txt: removed"
    assert "-.none null" in key
    assert "+.nothing null" in key
    assert new == "expected/sub/new.txt: new"
    assert "-0.594" in number
    assert "+0.614" in number


def test_a_difference_is_shown_and_how_to_approve_it(tmp_path: Path) -> None:
    kept = Snapshots(tmp_path, approve=False)
    Snapshots(tmp_path, approve=True).check("a.txt", TABLE)
    kept.check("a.txt", TABLE)
    with pytest.raises(AssertionError) as failed:
        kept.check("a.txt", TABLE.replace("0.594", "0.595"))
    assert "- old     0.594" in str(failed.value)
    assert "--approve" in str(failed.value)
    with pytest.raises(AssertionError) as failed:
        kept.check("a.txt", "\n".join(map(str, range(1000))))
    assert len(str(failed.value).splitlines()) < 50
    with pytest.raises(AssertionError, match=r"no test compares a\.txt"):
        kept.holds_only([])
    Snapshots(tmp_path, approve=True).holds_only([])
    assert not (tmp_path / "a.txt").exists()
