"""karat experiment, as typed: exit codes, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.experiment_traffic import traffic

PLAN = """\
[experiment]
name = "ranker"
control = "a"
treatment = "b"
users = 500
decide = ["CTR"]

[guard]
"Latency(p95)" = 30
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "log.parquet"
    traffic(users=500, lift=0.12, seed=4).write_parquet(path)
    return path


def test_a_plan_and_its_log(typed, tmp_path: Path, log: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    found = typed(f"experiment analyze {log} --plan plan.toml")
    assert found.out.startswith("Ship: CTR is better and every guardrail passed\nranker: b against")
    assert max(map(len, found.out.splitlines())) <= 80
    content = json.loads(typed(f"experiment analyze {log} --plan plan.toml -f json").out)
    assert (content["verdict"], content["exit_code"], content["name"]) == ("pass", 0, "ranker")
    assert content["health"][0].keys() >= {"check", "state", "detail"}
    assert content["effects"][0].keys() >= {
        "metric", "role", "control", "treatment", "difference", "ci_low", "ci_high", "cs_low",
        "cs_high", "relative", "relative_low", "relative_high", "p", "p_corrected", "n_control",
        "n_treatment",
    }  # fmt: skip
    text = typed(
        f"experiment analyze {log} --plan plan.toml -f md --by query --report page.html"
    ).out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Ship: CTR is better and every guardrail passed" in page
    assert "Queries that carry it" in page
    assert "**Ship: CTR is better" in text
    assert "| red shoes " in text


def test_exit_codes(typed, log: Path) -> None:
    asked = f"experiment analyze {log} --control a --treatment b --decide CTR"
    assert typed(f"{asked} --shares 90:10", code=3).out.startswith("Unhealthy: sample ratio: ")
    assert typed(f"{asked} --shares 90:10", "--despite", "we know why").out.startswith("Ship: ")
    worse = typed(f"experiment analyze {log} --control b --treatment a --decide CTR", code=1)
    assert worse.out.startswith("Hold: CTR is worse")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "no arms are named"),
        ("--control a --treatment c", "the log has no arm 'c'"),
        ("--control a --treatment b --decide CRT", "unknown online metric 'CRT'"),
        ("--control a --treatment b --guard CTR", "the guardrail 'CTR' has no margin"),
        ("--control a --treatment b --by colour", "unknown dimension 'colour'"),
        ("--control a --treatment b --window soon", "'soon' is not a duration"),
        ("--plan none.toml", "none.toml: "),
    ],
)
def test_mistakes(typed, log: Path, line: str, error: str) -> None:
    assert error in typed(f"experiment analyze {log} {line}", code=2).err


def test_a_wrong_plan_names_its_line(typed, tmp_path: Path, log: Path) -> None:
    (tmp_path / "p.toml").write_text(PLAN.replace("30", '"thirty"'), encoding="utf-8")
    error = typed(f"experiment analyze {log} --plan p.toml", code=2).err
    assert "p.toml, line 9: [guard] Latency(p95) is 'thirty', not a margin" in error


def test_plan(typed, log: Path) -> None:
    found = typed(f"experiment plan {log} -m CTR")
    assert "Smallest change that is found" in found.out
    assert max(map(len, found.out.splitlines())) <= 80
    content = json.loads(typed(f"experiment plan {log} -m CTR -f json").out)
    assert content["certificates"][0].keys() >= {"metric", "false_positives", "may_decide"}
    assert "| CTR " in typed(f"experiment plan {log} -m CTR -f md").out


def test_interleaving(typed, tmp_path: Path, log: Path) -> None:
    error = typed(f"experiment interleaving {log}", code=2).err
    assert "the log has no interleaved searches" in error
    rows = [
        {"user_id": f"u{n}", "timestamp": 1_790_000_000 + n, "action_name": action,
         "query_id": str(n), "user_query": "q", "returned": 2, "teams": "AB" if n % 2 else "BA",
         "object_id": "d", "position": 1 + (n + (n % 10 == 0)) % 2}
        for n in range(60) for action in ("search", "click")
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "i.jsonl").write_text(text, encoding="utf-8")
    found = typed("experiment interleaving i.jsonl", code=0)
    assert found.out.startswith("B is preferred\n60 searches of 60 users, credit by click\n")
    assert json.loads(typed("experiment interleaving i.jsonl -f json").out)["wins_b"] == 54
    assert "**B is preferred**" in typed("experiment interleaving i.jsonl -f md").out
