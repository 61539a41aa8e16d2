"""--notes: all notes under a table; without it three, and how many more there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Typed

# q2 is missing, q3 is not judged, q4 has nothing relevant, a and b are tied, x is not judged.
QRELS = "q1 0 a 2\nq1 0 b 1\nq2 0 a 1\nq4 0 a 0\n"
RUN = "q1 Q0 a 1 3 r\nq1 Q0 b 2 3 r\nq1 Q0 x 3 2 r\nq3 Q0 a 1 1 r\nq4 Q0 a 1 1 r\n"


@pytest.fixture(autouse=True)
def files(typed: Typed, tmp_path: Path) -> None:
    """Files that many notes are about."""
    for name, text in (("q", QRELS), ("r", RUN), ("s", RUN.replace(" 3 r", " 1 r"))):
        (tmp_path / name).write_text(text)
    policy = '[[rule]]\nmeasure = "nDCG@10"\nmax_drop = "90%"\n[health]\nmax_missing = 5\n'
    (tmp_path / "p.toml").write_text(policy)


def notes(out: str) -> list[str]:
    """The last bullets."""
    lines = out.splitlines()
    last = max(at for at, line in enumerate(lines) if not line.strip())
    return [line for line in lines[last:] if line.startswith("· ")]


@pytest.mark.parametrize(
    "line", ["evaluate q r", "compare q r s -m nDCG@10", "gate --policy p.toml q r s"]
)
def test_three_notes_or_all(typed: Typed, line: str) -> None:
    every = json.loads(typed(f"{line} -f json").out)["notes"]
    shown = typed(line).out
    assert len(every) > 4
    assert len(notes(shown)) == 3
    assert shown.splitlines()[-1] == f"{len(every) - 3} more notes: --notes"
    everything = typed(f"{line} --notes").out
    assert len(notes(everything)) == len(every)
    assert "--notes" not in everything


def test_the_most_important_comes_first(typed: Typed) -> None:
    assert [line[:30] for line in notes(typed("evaluate q r").out)] == [
        "· 1 query not in the run: scor",
        "· the order of tied documents ",
        "· unjudged documents could cha",
    ]
