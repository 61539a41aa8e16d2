"""Every command where only the core is installed: it works, or names the extra that it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from karat.cli.main import karat
from karat.cli.mistakes import EXTRAS
from karat.formats.own.judges import read_judge
from karat.formats.own.passports import KEYS, write_passport

# A line for each command, with arguments enough to get into it; q and r are qrels and a run.
LINES = {
    "backup": "b.zip",
    "autojudge certify": "mine --qrels q --queries queries.csv --documents docs.jsonl",
    "autojudge doubts": "mine",
    "autojudge fake-server": "--help",  # it serves until it is stopped
    "autojudge list": "",
    "autojudge run": "mine --qrels q --queries queries.csv --documents docs.jsonl",
    "autojudge show": "mine --format json",
    "clicks agree": "",
    "clicks fit": "events.jsonl",
    "clicks judge": "events.jsonl -o grades.parquet",
    "clicks models": "",
    "compare": "q r r2",
    "completion": "bash",
    "diagnose": "q r",
    "evaluate": "q r",
    "experiment analyze": "events.jsonl --control a --treatment b",
    "experiment interleaving": "events.jsonl",
    "experiment plan": "events.jsonl",
    "explain": "q r 1",
    "fuse": "r r2 -o fused.trec",
    "gate": "q r r2 --policy p.toml",
    "golden agreement": "",
    "golden choose": "log.csv",
    "golden coverage": "r",
    "golden diff": "1 2",
    "golden disagreements": "",
    "golden documents": "mine",
    "golden editions": "",
    "golden export": "out",
    "golden freeze": "1",
    "golden import": "q",
    "golden plan": "",
    "golden pool": "r",
    "golden queue": "pairs.csv",
    "golden source": "ann llm",
    "golden stale": "",
    "golden split": "g.json",
    "golden status": "",
    "init": "made",
    "judge": "--terminal",
    "lint": "q r",
    "measures": "",
    "online against": "q r",
    "online alerts acknowledge": "1",
    "online alerts list": "",
    "online alerts mute": "1 --until 2026-12-01",
    "online alerts reopen": "1",
    "online alerts resolve": "1",
    "online alerts show": "1",
    "online evaluate": "",
    "online import": "events.jsonl",
    "engine check": "mine",
    "engine import": "case.json",
    "engine list": "",
    "online metrics": "",
    "online queries": "",
    "online simulate": "q r -o sim --users 2 --days 1",
    "online status": "",
    "online watch": "",
    "people invite": "ann",
    "people let-in": "ann",
    "people list": "",
    "people new-password": "ann",
    "people role": "ann rater",
    "people shut-out": "ann",
    "release advance": "x",
    "release evidence": "x",
    "release hold": "x --reason y",
    "release resume": "x --reason y",
    "release rollback": "x --reason y",
    "release run": "",
    "release skip": "x --reason y",
    "release start": "x r r2 --propose",
    "release status": "",
    "release watch": "x",
    "release why": "",
    "restore": "b.zip back",
    "review": "q r r2",
    "search": "--python my_search:search queries.csv -o searched.trec",
    "serve": "",
    "shadow compare": "r r2",
    "shadow run": "mine tunable --log queries.csv --out s.jsonl --rate 100",
    "trend": "h.jsonl",
    "try": "mine foo",
    "tune": "tunable queries.csv --judgments q --param n=1:2",
}
CORE = {
    "autojudge fake-server", "autojudge list", "autojudge show", "clicks models",
    "compare", "completion", "diagnose", "engine check", "engine import", "engine list",
    "evaluate", "explain", "fuse", "gate", "golden plan", "golden split",
    "lint", "measures", "online metrics", "online simulate", "review", "search", "shadow compare",
    "shadow run", "trend",
}  # fmt: skip
"""What does its work with the core alone."""
_RUN = """
import contextlib, io, json, sys
for package in json.loads(sys.argv[1]):
    sys.modules[package] = None  # importing it fails, as where it is not installed
from karat.cli.main import main
ended = {}
for name, line in json.loads(sys.argv[2]).items():
    sys.argv = ["karat", *name.split(), *line.split()]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            ended[name] = (stop.code or 0, err.getvalue())
print(json.dumps(ended))
"""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands, those of groups included."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield " ".join(path)


def test_every_command_works_or_names_the_extra(tmp_path: Path) -> None:
    assert set(commands(karat)) == {*LINES, "demo"}  # which is long, and has tests of its own
    (tmp_path / "q").write_text("1 0 a 1\n2 0 a 1\n")
    for run in ("r", "r2"):
        (tmp_path / run).write_text("1 Q0 a 1 2 x\n2 Q0 a 1 2 x\n")
    (tmp_path / "p.toml").write_text('[[rule]]\nmeasure = "nDCG@10"\nmax_drop = "5%"\n')
    (tmp_path / "my_search.py").write_text("def search(text, n=1):\n    return ['a']\n")
    (tmp_path / "queries.csv").write_text("query_id,text,part\n1,foo,dev\n2,bar,held_out\n")
    (tmp_path / "log.csv").write_text("query,count\nfoo,3\n")
    tried = {"search_engine": "es", "search_url": "http://s/docs/_search", "query_params": "{}"}
    (tmp_path / "case.json").write_text(json.dumps({"case_name": "c", "try": tried}))
    (tmp_path / "g.json").write_text('[{"query": "foo", "relevant_docs": ["a"]}]')
    (tmp_path / "events.jsonl").write_text('{"type": "search", "time": 1, "user_id": "u"}\n')
    (tmp_path / "karat.toml").write_text(  # or they would stop for want of a workspace
        '[engine.mine]\nkind = "python"\nfunction = "my_search:search"\n'
        '[judge.mine]\nkind = "chat"\nbase_url = "http://localhost:9/v1"\nmodel = "m"\n'
        '[engine.tunable]\nkind = "python"\nfunction = "my_search:search"\nparams = { n = 1 }\n'
    )
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "a", "text": "foo"}\n')
    write_passport(tmp_path, read_judge("mine", tmp_path).rater, json.dumps(dict.fromkeys(KEYS)))
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps(list(EXTRAS)), json.dumps(LINES)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    ended = json.loads(done.stdout)
    assert set(ended) == set(LINES)
    for name, (code, said) in ended.items():
        assert "Traceback" not in said, name
        assert "bug in karat" not in said, name
        if name in CORE:
            assert code in (0, 1, 3) or name == "trend", (name, said)  # without a history
        else:
            assert code == 2, (name, said)
            assert "pip install 'karat[" in said, (name, said)


def test_every_optional_package_has_its_extra(root: Path) -> None:
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    extras = declared["project"]["optional-dependencies"]
    named = {
        "argon2-cffi": "argon2",
        "python-jsonpath": "jsonpath",
        "vl-convert-python": "vl_convert",
    }
    for extra in set(EXTRAS.values()):
        for needs in extras[extra]:
            package = needs.partition(">")[0].partition("[")[0]
            if package != "karat":
                assert named.get(package, package.replace("-", "_")) in EXTRAS
    for package, extra in EXTRAS.items():
        assert any(
            named.get(bare := needs.partition(">")[0].partition("[")[0], bare.replace("-", "_"))
            == package
            for needs in extras[extra]
        ), package
