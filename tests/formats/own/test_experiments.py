"""Plans of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.own.experiments import read_plan
from karat.online.rules import DAY
from karat.tables.experiments.experiment import Guard


def plan(folder: Path, text: str):
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_a_whole_plan(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        '[experiment]\ncontrol = "a"\ntreatment = "b"\nshares = [90, 10]\nusers = 5000\nweeks = 2\n'
        'start = 2026-11-02\nend = "2026-11-15"\nwindow = "7d"\nbefore = "7d"\nalpha = 0.1\n'
        'decide = ["SAT"]\ndiagnose = ["Dwell"]\n[guard]\nCTR = "2%"\nErrorRate = 0.002\n'
        "[cap]\nRevenuePerSearch = 500\n",
    )
    assert (found.control, found.treatment, found.name) == ("a", "b", "plan")
    assert (found.shares, found.users, found.weeks) == ((90.0, 10.0), 5000, 2)
    assert (found.start, found.end) == (20_759, 20_772)  # days since 1970-01-01
    assert (found.window_us, found.before_us, found.alpha) == (7 * DAY, 7 * DAY, 0.1)
    assert found.guards == (Guard("CTR", 0.02, relative=True), Guard("ErrorRate", 0.002))
    assert found.caps == {"RevenuePerSearch": 500.0}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "no control"),
        ('control = "a"', "no treatment"),
        ('control = "a"\ntreatment = "b"\nusers = 0', "line 4: .experiment. users is 0"),
        ('control = "a"\ntreatment = "b"\nshares = [1]', "line 4: .experiment. shares is"),
        ('control = "a"\ntreatment = "b"\nshares = [1, inf]', "line 4: .experiment. shares is"),
        (
            'control = "a"\ntreatment = "b"\ndecide = ["Nope"]',
            "plan.toml: .* unknown online",
        ),
        ('control = "a"\ntreatment = "b"\n[cap]\nNope = 1', "line 5: .cap. unknown online metric"),
        ('control = "a"\ntreatment = "b"\n[cap]\n"Latency(p95)" = 1', "not a ratio of sums"),
        ('control = "a"\ntreatment = "b"\nwindow = "soon"', "'soon' is not a duration"),
        ('control = "a"\ntreatment = "b"\nstart = "x"', "start: "),
        ('control = "a"\ntreatment = "b"\nalphas = 1', "unknown key 'alphas'"),
        ('control = "a"\ntreatment = "b"\n[guard]\nCTR = "two"', "line 5: .guard. CTR is 'two'"),
        ('control = "a"\ntreatment = "b"\n[cap]\nCTR = "x"', ".cap. CTR is 'x', not a number"),
    ],
)
def test_wrong_plans(tmp_path: Path, line: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        plan(tmp_path, f"[experiment]\n{line}\n")
