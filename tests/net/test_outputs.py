"""What every command prints is what it printed: tables, JSON and the rest, messages, exit codes."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from tests.net.commands import NOW, masked, readable, typed
from tests.net.snapshots import Snapshots
from tests.net.test_surface import walked
from tests.net.visible import visible

from karat.cli.main import karat
from karat.store.sql import people
from karat.workflows.workspace.workspace import open_workspace


class Asked(NamedTuple):
    """A command to run: each of its forms is one text, and so is each file it writes."""

    name: str
    line: str
    forms: str = ""  # of -f, besides what it prints without; a first word "-" leaves that out
    files: tuple[str, ...] = ()
    given: str = ""
    deep: bool = False  # asked with --deep only: it takes long, and others ask for its kind


TWO = "demo demo/runs/bm25.trec demo/runs/hybrid.trec"
THREE = "demo demo/runs/bm25.trec demo/runs/semantic.trec demo/runs/hybrid.trec"
OTHER = "demo demo/runs/bm25.trec demo/runs/semantic.trec"
ONE = "demo demo/runs/bm25.trec"
W = "-w demo"
RUNS = "demo/runs/bm25.trec demo/runs/hybrid.trec"
SEARCH = "def search(text):\n    return [(word, len(word)) for word in sorted(set(text.split()))]\n"
JUDGE = (
    "def judge(asked):\n"
    "    words = asked['query'].lower().split()\n"
    "    return min(3, sum(word in asked['document']['body'].lower() for word in words))\n"
)
ENGINE = (
    '[engine.mine]\nkind = "python"\nfunction = "own_search_of_the_net:search"\n'
    '[judge.words]\nkind = "python"\nfunction = "own_judge_of_the_net:judge"\n'
)
FILES = "--qrels judged.csv --queries demo/queries.jsonl --documents demo/corpus.jsonl"
FAULTY = (
    "q1 Q0 d1 1 2.5 bad\nq1 Q0 d1 2 2.0 bad\nq1 Q0 d2 3 many bad\n\nq2 Q0 d3 1 1.0\n"
    "q2 Q0 d4 2 nan bad\n"
)
CASE = {
    "case_name": "Films",
    "queries": [],
    "try": {
        "query_params": '{"query": {"match": {"title": "#$query##"}}, "boost": ##boost##}',
        "field_spec": "id:_id, title:title",
        "curator_vars": {"boost": 3},
        "search_endpoint": {
            "search_engine": "es",
            "endpoint_url": "http://search:9200/films/_search",
        },
    },
}
LOG = "query,count\n" + "".join(
    f"{text},{count}\n"
    for count, text in enumerate(
        ("sort a list", "read file", "asynico sleep", "json dump", "regex", "mail a@b.org"), 3
    )
)
DEMO: dict[str, tuple[Asked, ...]] = {
    "evaluate": (
        Asked("evaluate", f"evaluate {THREE}", "json csv md latex"),
        Asked("evaluate-by", f"evaluate {THREE} --by class", "json md"),
        Asked("evaluate-full", f"evaluate {TWO} --full --by class", ""),
        Asked("evaluate-queries", f"evaluate {TWO} -q -m nDCG@10 -m RR@10", "json csv"),
        Asked(
            "evaluate-trec", f"evaluate {TWO} -q -m map -m P@5 -m ndcg -f trec --compat trec_eval-9"
        ),
        Asked(
            "evaluate-settings",
            f"evaluate {THREE} -m 'P(rel=2)@5' -m 'ERR(max=3)@10' -m RBP -m AP --interval bca"
            " -l 2 -c -M 20 --bounds --notes",
            "json",
        ),
        Asked("evaluate-judged", f"evaluate {TWO} -J --threshold 20", "json"),
        Asked(
            "evaluate-written",
            f"evaluate {TWO} --history own.jsonl --commit abc --report page.html --plot plot.svg",
            "",
            ("own.jsonl", "page.html"),
        ),
        Asked("evaluate-again", f"evaluate {TWO} -M 5 --history own.jsonl --commit abd"),
        Asked("trend-of-evaluate", "trend own.jsonl", "json"),
        Asked("evaluate-mistakes", f"evaluate {TWO} -m nDGC@10"),
        Asked("evaluate-nothing", "evaluate demo nowhere.trec"),
    ),
    "compare": (
        Asked("compare", f"compare {THREE}", "json csv md latex"),
        Asked("compare-by", f"compare {TWO} --by class --margin 0.05", "json"),
        Asked("compare-full", f"compare {TWO} --full -m nDCG@10 -m R@100"),
        Asked(
            "compare-pairs",
            f"compare {THREE} --all-pairs --test t --interval bca -m nDCG@10 -m RR",
            "json",
        ),
        Asked(
            "compare-next",
            f"compare {TWO} -m R@100 --review 3 --judge-next 5 --judge-file next.csv",
            "json",
            ("next.csv",),
        ),
        Asked("compare-no-certificate", f"compare {TWO} -m nDCG@10 --certificate no.json"),
        Asked(
            "compare-certificate",
            f"compare {OTHER} -m P@1 --certificate certificate.json",
            "",
            ("certificate.json",),
        ),
        Asked("compare-verify", f"compare {OTHER} --verify certificate.json", "json"),
        Asked("compare-page", f"compare {TWO} --report page.html -m nDCG@10", "", ("page.html",)),
    ),
    "explain": (
        Asked("explain", "explain demo demo/runs/semantic.trec q01", "json"),
        Asked(
            "explain-ap",
            "explain demo demo/runs/bm25.trec q05 -m AP --top 15 --queries demo/queries.jsonl",
            "json",
        ),
        Asked("explain-nothing", "explain demo demo/runs/bm25.trec q999"),
    ),
    "review": (
        Asked("review", f"review {TWO} --by class --report page.html", "json md", ("page.html",)),
        Asked("review-online", f"review {OTHER} -m AP --by class {W}", "json", deep=True),
    ),
    "diagnose": (
        Asked(
            "diagnose",
            "diagnose demo demo/runs/hybrid.trec --stage bm25=demo/runs/bm25.trec"
            " --stage semantic=demo/runs/semantic.trec --stage hybrid=demo/runs/hybrid.trec"
            " --by class",
            "json md",
        ),
        Asked("diagnose-untraced", f"diagnose {ONE} --query q01 --fail-on debugging", "json"),
    ),
    "fuse": (
        Asked("fuse", "fuse demo/runs/bm25.trec demo/runs/semantic.trec --depth 5"),
        Asked(
            "fuse-sum",
            "fuse demo/runs/bm25.trec demo/runs/semantic.trec --method sum --weights 2,1"
            " --normalise z-score --depth 5 -o sum.jsonl",
            "",
            ("sum.jsonl",),
        ),
        Asked(
            "fuse-tuned",
            "fuse demo/runs/bm25.trec demo/runs/semantic.trec --tune demo --depth 5 -o tuned.trec",
            "",
            ("tuned.trec",),
        ),
    ),
    "gate": (
        Asked("gate", f"gate --policy demo/gate.toml {TWO}", "json junit github md"),
        Asked("gate-init", "gate --init demo demo/runs/bm25.trec", "", ("gate.toml",)),
        Asked("gate-fitted", f"gate --policy gate.toml {TWO} --notes", "json"),
        Asked(
            "gate-baseline",
            "gate --save-baseline saved.json --policy demo/gate.toml demo demo/runs/bm25.trec",
            "",
            ("saved.json",),
        ),
        Asked(
            "gate-against-baseline",
            "gate --policy demo/gate.toml demo saved.json demo/runs/hybrid.trec --history h.jsonl"
            " --report page.html --commit 1 --corpus c",
            "",
            ("h.jsonl", "page.html"),
        ),
        Asked("gate-nothing", "gate --policy nowhere.toml demo demo/runs/bm25.trec"),
    ),
    "lint": (
        Asked("lint", f"lint {TWO}", "json github"),
        Asked("lint-faults", "lint faulty.trec --role faulty.trec=run --strict", "json github"),
    ),
    "catalogues": (
        Asked("measures", "measures", "json md"),
        Asked("measures-one", "measures ndcg_cut_10", "json"),
        Asked("measures-for", "measures --for rag", "json"),
        Asked("measures-nothing", "measures nDGC"),
        Asked("online-metrics", "online metrics", "json md"),
        Asked("online-metrics-one", "online metrics CTR@5", "json"),
        Asked("clicks-models", "clicks models", "json md"),
        Asked("clicks-models-one", "clicks models sdbn", "json"),
        Asked("golden-plan", "golden plan --difference 0.02 --per-hour 30", "json"),
        Asked("completion-bash", "completion bash"),
        Asked("completion-zsh", "completion zsh"),
        Asked("completion-fish", "completion fish"),
    ),
    "trend": (
        Asked("trend", "trend demo/history.jsonl", "json"),
        Asked(
            "trend-slice", "trend demo/history.jsonl -m nDCG@10 --last 4 --notes --fail-on-drift"
        ),
        Asked("trend-page", "trend demo/history.jsonl -f html -o t.html", "", ("t.html",)),
    ),
    "golden-read": (
        Asked("golden-status", f"golden status {W}", "json"),
        Asked("golden-agreement", f"golden agreement {W}", "json"),
        Asked("golden-agreement-by", f"golden agreement {W} --by class", "json"),
        Asked("golden-coverage", f"golden coverage {W} -k 20 demo/runs/hybrid.trec", "json"),
        Asked("golden-disagreements", f"golden disagreements {W}", "json"),
        Asked("golden-editions", f"golden editions {W}", "json"),
        Asked("golden-stale", f"golden stale {W}", "json"),
        Asked("golden-export", f"golden export {W} out.trec", "", ("out.trec",)),
        Asked("golden-export-json", f"golden export {W} out.json --edition first --json"),
        Asked("golden-export-run", f"golden export {W} run.jsonl --run hybrid --json"),
        Asked("golden-export-nothing", f"golden export {W} out.what --format what"),
    ),
    "golden-write": (
        Asked("golden-split", f"golden split {W} --share 0.3", "json"),
        Asked("golden-split-uses", f"golden split {W} --uses", "json"),
        Asked("golden-pool", f"golden pool {W} demo/runs/hybrid.trec -k 12 --budget 40", "json"),
        Asked("compare-for-queue", f"compare {TWO} -m R@100 --judge-next 5 --judge-file next.csv"),
        Asked("golden-queue", f"golden queue {W} next.csv", "json"),
        Asked(
            "judge", f"judge {W} --terminal --rater anna", given="2\ne too short\n1\nz\nu no\nq\n"
        ),
        Asked("golden-import", f"golden import {W} judged.csv --rater ben"),
        Asked("golden-import-json", f"golden import {W} more.csv --source gpt-5=llm --json"),
        Asked("golden-source", f"golden source {W} ben import"),
        Asked("golden-disagreements-queue", f"golden disagreements {W} --queue", "json"),
        Asked("golden-freeze", f"golden freeze {W} second"),
        Asked("golden-freeze-json", f"golden freeze {W} third -f json"),
        Asked("golden-freeze-again", f"golden freeze {W} third"),
        Asked("golden-diff", f"golden diff {W} first second --by class", "json"),
        Asked("golden-status-after", f"golden status {W}", "json"),
    ),
    "new": (
        Asked(
            "init", "init new --name shop --raters 1", "", ("new/karat.toml", "new/guideline.md")
        ),
        Asked(
            "golden-create-import", "golden import -w new demo/queries.jsonl demo/qrels/test.tsv"
        ),
        Asked("golden-create-status", "golden status -w new", "json"),
        Asked("golden-choose", "golden choose -w new log.csv --size 4 --mask", "json"),
        Asked("init-again", "init new"),
        Asked("init-upgrade", "init new --upgrade"),
        Asked("backup", "backup -w new new.zip"),
        Asked("restore", "restore new.zip restored"),
        Asked("restored-status", "golden status -w restored", "json"),
        Asked("people-none", "people list -w new", "json"),
        Asked("people-invite", "people invite -w new dora --url https://karat.example.org"),
        Asked("people-role", "people role -w new anna engineer"),
        Asked("people-new-password", "people new-password -w new anna"),
        Asked("people-shut-out", "people shut-out -w new anna"),
        Asked("people-list", "people list -w new", "json"),
        Asked("people-let-in", "people let-in -w new anna"),
        Asked("people-nobody", "people role -w new nobody owner"),
        Asked(
            "search",
            "search --python own_search_of_the_net:search demo/queries.jsonl -o found.trec"
            " --about index=v2 -k 5",
            "",
            ("found.trec",),
        ),
        Asked(
            "search-json", "search --python own_search_of_the_net:search -o a.trec few.csv -f json"
        ),
        Asked("engine-list", "engine list", "json"),
        Asked("engine-check", "engine check mine --query lists", "json"),
        Asked("engine-unknown", "engine check main"),
        Asked("search-exact-unknown", "search mine few.csv --exact"),
        Asked("tune-unknown", "tune mine few.csv --judgments judged.csv --param k=1:2"),
        Asked("search-engine", "search mine few.csv -o b.trec", "", ("b.trec",)),
    ),
    "shadow": (
        Asked("shadow-compare", f"shadow compare {RUNS} --qrels demo/qrels/test.tsv -k 5", "json"),
        Asked("shadow-by", f"shadow compare {RUNS} {W} --by class --judge-next 5 -f md"),
        Asked("shadow-nothing", "shadow compare demo/runs/bm25.trec"),
    ),
    "judges": (
        Asked("autojudge-dry-run", f"autojudge run words {FILES} --dry-run", "json"),
        Asked("autojudge-run", f"autojudge run words {FILES} -o g.csv", "", ("g.csv",)),
        Asked("autojudge-run-again", f"autojudge run words {FILES} -f json"),
        Asked("autojudge-certify", f"autojudge certify words {FILES} --tests 2", "json"),
        Asked("autojudge-show", "autojudge show words", "json"),
        Asked("autojudge-list", "autojudge list", "json"),
        Asked("evaluate-machine", f"evaluate judged.csv {ONE[5:]} --machine-grades g.csv", "json"),
    ),
    "releases": (
        Asked("release-status", f"release status {W}", "json md"),
        Asked("release-one", f"release status {W} hybrid-2", "json md"),
        Asked("release-story", f"release why {W} hybrid-1", "json md"),
        Asked("release-record", f"release why {W}", "json md"),
        Asked("release-propose", f"release start {W} next bm25 hybrid --propose"),
        Asked("release-again", f"release start {W} hybrid-2 bm25 hybrid --policy no.toml -f json"),
        Asked("release-advance", f"release advance {W} semantic --by anna -f json"),
        Asked("release-skip", f"release skip {W} semantic --by anna --reason looks -f json"),
        Asked("release-hold", f"release hold {W} semantic --by anna --reason freeze -f json"),
        Asked("release-resume", f"release resume {W} semantic --by anna --reason over -f json"),
        Asked("release-evidence", f"release evidence {W} semantic", "json"),
        Asked("release-run", f"release run {W}", "json"),
        Asked("release-watch", f"release watch {W} semantic", "json"),
        Asked("release-rollback", f"release rollback {W} semantic --by anna --reason no -f json"),
        Asked("release-unknown", f"release status {W} hybrid"),
    ),
    "alerts": (
        Asked("alerts-list", f"online alerts list {W}", "json"),
        Asked("alerts-acknowledge", f"online alerts acknowledge 1 {W} --by eve --note looking"),
        Asked("alerts-mute", f"online alerts mute 1 {W} --by eve --until 8h -f json"),
        Asked("alerts-resolve", f"online alerts resolve 1 {W} --by eve"),
        Asked("alerts-reopen", f"online alerts reopen 1 {W} --by eve"),
        Asked("alerts-show", f"online alerts show 1 {W}", "json"),
        Asked("alerts-unknown", f"online alerts show 9 {W}"),
    ),
    "online-read": (
        Asked("online-status", f"online status {W}", "json"),
        Asked("online-evaluate", f"online evaluate {W} --by arm --notes", "json", deep=True),
        Asked("online-queries", f"online queries {W} --limit 8", "json", deep=True),
        Asked(
            "experiment-analyze",
            "experiment analyze demo/events --plan demo/experiments/hybrid.toml",
            "json md",
        ),
        Asked("experiment-plan", "experiment plan demo/events -m SAT", "json md"),
        Asked("experiment-interleaving", "experiment interleaving demo/events", "json md"),
        Asked("clicks-fit", "clicks fit demo/events --by device", "json md"),
        Asked("clicks-fit-of-pages", "clicks fit pages.txt -m DBN --held-out pages.txt", "json"),
        Asked("online-watch-by", f"online watch {W} --by query_class -f json"),
        Asked("online-against", f"online against {W} demo demo/runs/bm25.trec", "json", deep=True),
    ),
    "clicks-grades": (
        Asked("clicks-preview", f"clicks judge {W} --preview --least 50 -f json"),
        Asked("clicks-judge", f"clicks judge {W}", "md"),
        Asked("clicks-agree", f"clicks agree {W} --by class --notes", "json md"),
        Asked("clicks-naive", f"clicks judge {W} --model naive --cut 0.05,0.1,0.2 -o g.csv"),
        Asked("evaluate-clicks", f"evaluate {ONE} --judgments clicks -m nDCG@10", "json"),
        Asked("compare-clicks", f"compare {TWO} --judgments clicks -m nDCG@10"),
    ),
    "online-write": (
        Asked(
            "online-simulate",
            "online simulate demo demo/runs/bm25.trec -o log.ndjson --days 3 --users 20"
            " --sessions 10 --seed 1",
            "json",
        ),
        Asked("online-import-check", "online import --events events log.ndjson --check", "json"),
        Asked("online-import", "online import --events events log.ndjson", "json"),
        Asked("online-import-status", "online status --events events", "json"),
        Asked("online-few", "online evaluate --events events -m CTR@5 -m SAT -f csv"),
        Asked("online-few-md", "online evaluate --events events -f md"),
        Asked("online-few-queries", "online queries --events events -f csv"),
        Asked("online-few-queries-md", "online queries --events events --by arm -f md"),
        Asked("online-few-against", f"online against --events events {ONE} -f csv"),
        Asked("online-few-against-md", f"online against --events events {ONE} -f md"),
        Asked("online-few-watch", "online watch --events events"),
    ),
}
ENGINES = (
    Asked("try", "try bm25 q01", "json"),
    Asked("try-against", "try bm25 lists --against semantic -k 3"),
    Asked("try-all", "try bm25 --all --param title_weight=3 --name heavier"),
    Asked("try-all-again", "try bm25 --all --param title_weight=1 --name lighter"),
    Asked("try-all-json", "try bm25 --all --param title_weight=2 --name third -f json"),
    Asked("try-list", "try --list", "json"),
    Asked("try-forget", "try --forget lighter"),
    Asked("try-forget-json", "try --forget third -f json"),
    Asked("golden-documents", "golden documents bm25", "json"),
    Asked("tune", "tune bm25 --param title_weight=1,4 --trials 2", "json"),
    Asked("engine-import", "engine import case.json"),
)
"""What is run in the demo's own folder, whose karat.toml has engines."""
CHANGING = {
    "alerts", "clicks-grades", "golden-write", "judges", "new", "online-write", "releases",
}  # fmt: skip
"""Where a command finds what those before it left, in whatever form they were asked."""
LEFT_OUT = {
    "karat autojudge doubts": "tests/cli/judging asks it",
    "karat autojudge fake-server": "does not end; tests/cli/judging asks it",
    "karat serve": "does not end; test_pages.py records what it serves",
    "karat shadow run": "prints latencies; tests/cli/experiments asks it",
}
"""Commands of which nothing is recorded, and why."""


def record(
    asked: Asked, folder: Path, snapshots: Snapshots, minutes: int, *, most: int = 99
) -> list[str]:
    """Run a command in so many of its forms, and compare; the names of all its expected texts."""
    names = []
    for number, form in enumerate(("", *asked.forms.split())):
        line = f"{asked.line} -f {form}" if form else asked.line
        name = f"{asked.name}.{form or 'txt'}"
        names.append(name)
        if number < most:
            snapshots.check(name, typed(line, folder, asked.given, minutes))
    for file in asked.files:
        name = f"{asked.name}.{Path(file).name}.txt"
        names.append(name)
        if not most:
            continue
        assert (folder / file).is_file(), (snapshots.folder / names[0]).read_text(encoding="utf-8")
        text = (folder / file).read_text(encoding="utf-8")
        shown = visible(text) if file.endswith(".html") else readable(text)
        snapshots.check(name, masked(shown, folder))
    return names


def test_the_commands_print_of_the_engines_what_they_printed(
    copied: Path, snapshots: Callable[[str], Snapshots]
) -> None:
    folder = copied / "demo"
    (folder / "case.json").write_text(json.dumps(CASE))
    kept = snapshots("demo/engines")
    names: list[str] = []
    for minutes, asked in enumerate(ENGINES):
        names += record(asked, folder, kept, minutes)
    kept.holds_only(names)


@pytest.mark.parametrize("subject", DEMO)
def test_the_commands_print_of_the_demo_what_they_printed(
    subject: str, copied: Path, snapshots: Callable[[str], Snapshots], deep: bool
) -> None:
    """A build asks the first of what only reads for text and JSON, the others for their text."""
    _prepare(copied)
    kept = snapshots(f"demo/{subject}")
    names: list[str] = []
    for minutes, asked in enumerate(DEMO[subject]):
        if asked.name == "people-role":
            now = NOW * 1_000_000
            with (
                open_workspace(copied / "new", now=now, environment={}) as opened,
                opened.store.begin() as connection,
            ):
                people.add(connection, "anna", "rater", None, now)
        most = 99 if deep or subject in CHANGING else 0 if asked.deep else 1 if minutes else 2
        names += record(asked, copied, kept, minutes, most=most)
        if asked.name == "backup":
            with zipfile.ZipFile(copied / "new.zip") as archive:
                names.append("backup.names.txt")
                kept.check(names[-1], "\n".join(sorted(archive.namelist())))
    assert len(names) == len(set(names))
    kept.holds_only(names)


def _prepare(folder: Path) -> None:
    """Files of which commands of the tables read."""
    grades = "query_id,doc_id,grade\nq01,json,3\nq01,json.loads,1\nq02,print,2\n"
    (folder / "judged.csv").write_text(grades)
    (folder / "more.csv").write_text(
        "query_id,doc_id,grade,rater\nq01,json.dump,0,gpt-5\nq02,map,2,cleo\n"
    )
    (folder / "faulty.trec").write_text(FAULTY)
    (folder / "log.csv").write_text(LOG)
    (folder / "pages.txt").write_text("a\tx,y : x\na\ty,x : y , x;a\tx,z : \n")
    (folder / "few.csv").write_text("query_id,text\na,sort a list\nb,read\n")
    (folder / "own_search_of_the_net.py").write_text(SEARCH)
    (folder / "own_judge_of_the_net.py").write_text(JUDGE)
    (folder / "karat.toml").write_text(ENGINE)


def test_the_demo_prints_what_it_printed(demo: Path, snapshots: Callable[[str], Snapshots]) -> None:
    kept = snapshots("demo/demo")
    kept.check("printed.txt", (demo / "printed.txt").read_text(encoding="utf-8"))
    page = (demo / "demo/report.html").read_text(encoding="utf-8")
    kept.check("report.txt", masked(visible(page), demo))
    history = (demo / "demo/history.jsonl").read_text(encoding="utf-8")
    kept.check("history.txt", masked(history, demo))
    kept.check("karat.toml", (demo / "demo/karat.toml").read_text(encoding="utf-8"))
    kept.holds_only(["printed.txt", "report.txt", "history.txt", "karat.toml"])


def test_every_command_is_recorded() -> None:
    all_asked = [*ENGINES, *(asked for table in DEMO.values() for asked in table)]
    lines = ["demo demo", *(asked.line for asked in all_asked)]
    said = [shlex.split(line) for line in lines]
    for name, command in walked(karat, "karat"):
        if isinstance(command, click.Group):
            continue
        words = name.split()[1:]
        there = any(each[: len(words)] == words for each in said)
        assert there != (name in LEFT_OUT), f"{name}: record it, or say why not"
        forms = next((each for each in command.params if "--format" in each.opts), None)
        if there and forms is not None and isinstance(forms.type, click.Choice):
            ours = {
                form
                for asked in all_asked
                if shlex.split(asked.line)[: len(words)] == words
                for form in (*asked.forms.split(), *_forms_of(asked.line))
            }
            lacking = set(forms.type.choices) - ours - {"table"}
            assert not lacking, f"{name}: record -f {', '.join(sorted(lacking))} too"


def _forms_of(line: str) -> list[str]:
    words = shlex.split(line)
    return [words[at + 1] for at, word in enumerate(words) if word == "-f"]


CRANFIELD = "cranfield words.trec titles.trec"
ROBUST = "robust03/qrels.robust03.gz robust03/input.aplrob03a.gz robust03/input.NLPR03vb10.gz"
FIELD: dict[str, tuple[Asked, ...]] = {
    "cranfield": (
        Asked("evaluate", f"evaluate {CRANFIELD}", "json csv md"),
        Asked("evaluate-by", f"evaluate {CRANFIELD} --by relevant_documents:quartiles"),
        Asked("compare", f"compare {CRANFIELD} --by query_length:quartiles", "json md"),
        Asked(
            "explain", "explain cranfield words.trec 1 --queries cranfield/queries.jsonl", "json"
        ),
        Asked("fuse", "fuse words.trec titles.trec -o fused.trec"),
        Asked("evaluate-fused", "evaluate cranfield fused.trec -f csv"),
        Asked("lint", "lint cranfield words.trec cranfield/cranqrel.raw", "json"),
        Asked("gate-init", "gate --init cranfield words.trec", files=("gate.toml",)),
        Asked("gate", f"gate --policy gate.toml {CRANFIELD} --history history.jsonl", "json"),
        Asked("trend", "trend history.jsonl -m nDCG@10", "json"),
        Asked("init", "init new --scale 0-4"),
        Asked("golden-import", "golden import -w new cranfield"),
        Asked("golden-status", "golden status -w new", "json"),
        Asked("golden-choose", "golden choose -w new log.tsv --size 20 --hard-from words.trec"),
        Asked("golden-choose-replace", "golden choose -w new log.tsv --size 20 --replace", "json"),
    ),
    "robust03": (
        Asked("evaluate", f"evaluate {ROBUST}", "json"),
        Asked("evaluate-trec", f"evaluate {ROBUST} -m map -m P@20 -f trec --compat trec_eval-10"),
        Asked("compare", f"compare {ROBUST} -m AP -m nDCG@10", "json"),
        Asked("explain", "explain robust03/qrels.robust03.gz robust03/input.aplrob03a.gz 601"),
        Asked("lint", f"lint {ROBUST}"),
        Asked("gate-init", f"gate --init {ROBUST.rpartition(' ')[0]}", files=("gate.toml",)),
        Asked("gate", f"gate --policy gate.toml {ROBUST} -f json"),
    ),
}


@pytest.mark.deep  # the demo's are asked with every build
@pytest.mark.parametrize("name", FIELD)
def test_the_commands_print_of_real_data_what_they_printed(
    name: str, field_data: Path, tmp_path: Path, snapshots: Callable[[str], Snapshots]
) -> None:
    (tmp_path / name).symlink_to(field_data / name, target_is_directory=True)
    if name == "cranfield":
        rank_cranfield(field_data / name, tmp_path)
    kept = snapshots(f"field/{name}")
    names: list[str] = []
    for minutes, asked in enumerate(FIELD[name]):
        names += record(asked, tmp_path, kept, minutes)
    kept.holds_only(names)


def rank_cranfield(data: Path, folder: Path) -> None:
    """Two runs, by the rare words that a query shares with a document: all of it, or its title."""
    texts = [json.loads(line) for line in (data / "corpus.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (data / "queries.jsonl").read_text().splitlines()]
    for name, parts in (("words", ("title", "text")), ("titles", ("title",))):
        held: dict[str, list[str]] = {}
        for each in texts:
            for word in set(" ".join(each.get(part) or "" for part in parts).lower().split()):
                held.setdefault(word, []).append(each["_id"])
        lines = []
        for query in queries:
            scores: dict[str, float] = {}
            for word in sorted(set(query["text"].lower().split())):
                for document in held.get(word, ()):
                    scores[document] = scores.get(document, 0.0) + 1 / len(held[word])
            best = sorted(scores, key=lambda each: (-round(scores[each], 6), each))[:50]
            lines += [
                f"{query['_id']} Q0 {document} {rank} {scores[document]:.6f} {name}\n"
                for rank, document in enumerate(best, 1)
            ]
        (folder / f"{name}.trec").write_text("".join(lines))
    counts = (f"{query['text'].strip()}\t{1 + n % 7}\n" for n, query in enumerate(queries))
    (folder / "log.tsv").write_text("query\tcount\n" + "".join(counts))
