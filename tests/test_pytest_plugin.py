"""karat's pytest plugin, as projects use it; ``pytester`` makes each of them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from tests.choosing import deep_but

import karat
import karat.reports.release.assertion
import karat.workflows.release.expectations  # before pytester, which forgets what a project imports

pytest_plugins = ["pytester"]

SHOP = """
PAGES = ["defaultdict", "setdefault", "list.sort", "sorted", "os.path.join", "str.join", "csv"]
FOUND = {
    "missing key": ["defaultdict", "setdefault"],
    "sort a list": ["list.sort", "sorted", "csv"],
    "join path": ["os.path.join", "str.join"],
    "join words": ["str.join", "os.path.join"],
    "read commas": ["csv"],
}
asked = []
upside_down = lambda text: [(page, n) for n, page in enumerate(backwards(text))]
def search(text):
    asked.append(text)
    return FOUND[text]

def hasty(text):
    return sorted(FOUND[text])

def backwards(text):
    return FOUND[text][::-1]

async def service(text):
    return [{"id": page, "score": -rank} for rank, page in enumerate(FOUND[text])]

async def dead(text):
    raise ConnectionError("refused")

def half_dead(text):
    if text.startswith("join"):
        raise ConnectionError("refused")
    return FOUND[text]

def empty(text): return []

def shapeless(text):
    return {"hits": []}
"""
GOLDEN = {
    "missing key": ["defaultdict", "setdefault"],
    "sort a list": ["list.sort", "sorted"],
    "join path": ["os.path.join"],
    "join words": ["str.join"],
    "read commas": ["csv"],
}
POLICY = """
[[rule]]
measure = "nDCG@3"
max_drop = "5%"
"""
INI = """
[pytest]
karat_golden = golden.json
karat_policy = gate.toml
karat_baseline = baseline.jsonl
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a project: a golden set, a policy and a baseline."""
    folder = tmp_path_factory.mktemp("project")
    golden = karat.GoldenSet("shop")
    for query, pages in GOLDEN.items():
        golden.add(query, pages)
    golden.save(folder / "golden.json")
    names: dict[str, object] = {}
    exec(SHOP, names)
    run = karat.benchmark(golden, names["search"], ["nDCG@3", "RR"]).runs["search"]
    karat.write_run(run, folder / "baseline.jsonl")
    karat.save_baseline(folder / "saved.json", folder / "golden.json", run, ["nDCG@3", "RR"])
    (folder / "gate.toml").write_text(POLICY, encoding="utf-8")
    (folder / "pytest.ini").write_text(INI, encoding="utf-8")
    return folder


@pytest.fixture
def shop(pytester: pytest.Pytester, made: Path) -> pytest.Pytester:
    """A project with a search, a golden set, a policy and a baseline."""
    pytester.makepyfile(shop=SHOP)
    shutil.copytree(made, pytester.path, dirs_exist_ok=True)
    return pytester


def outcome(project: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    """Run one test of a project, with that body."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    project.makepyfile(test_it=f"import shop\n\ndef test_it(karat_gate, karat_expect):\n{lines}")
    return project.runpytest("-Wdefault", *args)  # not karat's own, of which a warning is an error


def said(result: pytest.RunResult) -> str:
    """What pytest printed."""
    return result.stdout.str()


# --- a policy, over all queries ---


@pytest.mark.parametrize("search", ["search", "service"])
def test_a_search_that_is_as_it_was_passes(shop: pytest.Pytester, search: str) -> None:
    result = outcome(shop, f"assert karat_gate(shop.{search}).verdict == 'pass'")
    result.assert_outcomes(passed=1)


def test_a_search_that_got_worse_fails_and_names_queries_and_documents(
    shop: pytest.Pytester,
) -> None:
    result = outcome(shop, "karat_gate(shop.hasty)")
    result.assert_outcomes(failed=1)
    # sorted() puts csv before list.sort, 1 → 2, and sorted, 2 → 3: of "sort a list" DCG is
    # 1/log2(3) + 1/log2(4) = 1.1309 of 1 + 1/log2(3) = 1.6309, so nDCG@3 is 0.693. Of "join words"
    # str.join stands second: 1/log2(3) = 0.631. The mean drops by (0.307 + 0.369) / 5 = 0.1351.
    result.stdout.fnmatch_lines(
        [
            ">       karat_gate(shop.hasty)",
            "E       AssertionError: fail: hasty against baseline, by gate.toml",
            "E         fail: nDCG@3 drops by at most 5%",
            "E           dropped by 0.1351 (13.5 %), allowed 5 % = 0.0500",
            "E         2 other checks pass",
            "E       queries that lost most, by nDCG@3 (rank, grade, document):",
            'E         1.000 → 0.631  q4 "join words"',
            "E                 1 → 2    1  str.join",
            'E         1.000 → 0.693  q2 "sort a list"',
            "E                 1 → 2    1  list.sort",
            "E                 2 → 3    1  sorted",
            "test_it.py:4: AssertionError",
        ],
        consecutive=False,
    )
    assert "workflows" not in said(result)  # no traceback of karat's own


def test_a_saved_baseline_names_the_queries_alone(shop: pytest.Pytester) -> None:
    result = outcome(shop, "karat_gate(shop.hasty, baseline='saved.json')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            'E         1.000 → 0.631  q4 "join words"',
            'E         1.000 → 0.693  q2 "sort a list"',
            "E         (no documents: the baseline has saved values only;*",
        ]
    )
    assert outcome(shop, "karat_gate(shop.search, baseline='saved.json')").ret == 0


@pytest.mark.parametrize(
    "cannot_tell",
    [*(pytest.param(each, marks=pytest.mark.deep) for each in ("fail", "skip")), "pass"],
)
@pytest.mark.parametrize("search", deep_but(["half_dead"], ["dead", "half_dead", "empty"]))
def test_a_search_that_is_dead_never_passes(
    shop: pytest.Pytester, search: str, cannot_tell: str
) -> None:
    result = outcome(shop, f"karat_gate(shop.{search}, cannot_tell={cannot_tell!r})")
    result.assert_outcomes(failed=1)
    assert f"AssertionError: unhealthy: {search}" in said(result)
    if search != "empty":
        count = {"dead": 5, "half_dead": 2}[search]
        assert f"{count} of 5 got no answer ({count} × ConnectionError: refused)" in said(result)


def test_a_baseline_of_other_judgments_is_stale(shop: pytest.Pytester) -> None:
    golden = karat.GoldenSet.load(shop.path / "golden.json")
    golden.judge("q1", {"csv": 0})
    golden.save(shop.path / "golden.json")
    result = outcome(shop, "karat_gate(shop.search, baseline='saved.json', cannot_tell='pass')")
    result.assert_outcomes(failed=1)
    assert "AssertionError: stale: " in said(result)
    assert "the judgments changed since" in said(result)


def test_a_policy_that_makes_no_sense_here_fails(shop: pytest.Pytester) -> None:
    # The judged document is the fourth, and nDCG@3 looks at three: the baseline's mean is 0.
    judged = ["defaultdict", "list.sort", "os.path.join", "str.join", "csv"]
    nothing = {
        f"q{n}": {"x": 4.0, "y": 3.0, "z": 2.0, page: 1.0} for n, page in enumerate(judged, 1)
    }
    result = outcome(shop, f"karat_gate(shop.search, baseline={nothing!r}, cannot_tell='pass')")
    result.assert_outcomes(failed=1)
    assert "AssertionError: error: search against baseline" in said(result)
    assert "the baseline is 0" in said(result)


@pytest.mark.parametrize("chosen", deep_but([None, "skip"], [None, "fail", "skip", "pass"]))
def test_what_nobody_can_tell_fails_unless_chosen_otherwise(
    shop: pytest.Pytester, chosen: str | None
) -> None:
    # Two of five queries drop: the interval of the mean drop holds both 0 and more than 5 %.
    (shop.path / "gate.toml").write_text(POLICY + 'evidence = "interval"\n', encoding="utf-8")
    how = "" if chosen is None else f", cannot_tell={chosen!r}"
    result = outcome(shop, f"karat_gate(shop.hasty{how})", "-rs")
    if chosen in (None, "fail"):
        result.assert_outcomes(failed=1)
    elif chosen == "skip":
        result.assert_outcomes(skipped=1)
    else:
        result.assert_outcomes(passed=1, warnings=1)
    assert "cannot tell: hasty against baseline" in said(result)
    assert "test_it.py:4" in said(result)


def test_a_known_failure_that_passes_is_told(shop: pytest.Pytester) -> None:
    known = '[[known_failure]]\nquery = "q2"\nmin = 0.9\n'
    (shop.path / "gate.toml").write_text(POLICY + known, encoding="utf-8")
    result = outcome(shop, "karat_gate(shop.search)")
    result.assert_outcomes(passed=1, warnings=1)
    told = "q2 passes now (nDCG@3 1.000): remove it from the list in gate.toml"
    assert told in said(result)
    # "join words" drops by 0.369 of 4 queries, and q2 has 0.693: it fails still, and is not told.
    result = outcome(shop, "karat_gate(shop.hasty)")
    result.assert_outcomes(failed=1)
    assert "passes now" not in said(result)
    result = outcome(shop, "karat_gate(lambda text: shop.FOUND[text] if 'sort' in text else [])")
    result.assert_outcomes(failed=1)
    assert f"note: {told}" in said(result)
    order = "out of the order of their scores in 4 queries; karat ranks by score"
    assert order in said(outcome(shop, "karat_gate(shop.upside_down)"))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("golden='golde.json'", "karat.errors.InputError: golde.json: there is no such file"),
        ("policy='gat.toml'", "karat.errors.InputError: gat.toml: "),
        ("baseline='x.jsonl'", "karat.errors.InputError: x.jsonl: there is no such file"),
        ("policy={'rule': []}", "karat.errors.InputError: policy: the policy has no rule"),
        ("cannot_tell='maybe'", "karat.errors.UsageError: cannot_tell is 'maybe'"),
        ("timout=3", "karat.errors.UsageError: karat_gate has no argument 'timout'*timeout"),
        ("rel='2'", "karat.errors.UsageError: rel is '2', not a number"),
        ("golden=3", "karat.errors.InputError: qrels: a int is not a data frame"),
        ("policy=3", "karat.errors.InputError: policy: the policy is 3, not a table"),
        ("baseline=3", "karat.errors.InputError: run: a int is not a data frame"),
        ("timeout=0", "karat.errors.UsageError: timeout must be above 0"),
        ("policy={'rule': [{'measure': 'AP', 'min': 0, 'slice': 'a=b'}]}", "karat.errors.*a*"),
    ],
)
def test_a_mistake_is_told_without_a_traceback_and_before_asking(
    shop: pytest.Pytester, call: str, told: str
) -> None:
    body = f"try:\n    karat_gate(shop.search, {call})\nfinally:\n    assert not shop.asked"
    result = outcome(shop, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E*{told}*", "test_it.py:5: *Error"])
    assert "src/karat" not in said(result)


def test_files_are_beside_the_ini_file_wherever_pytest_starts(
    shop: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.makepyfile(test_it="import shop\n\ndef test_it(karat_gate): karat_gate(shop.hasty)")
    elsewhere = shop.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(shop.path)
    result = shop.runpytest("-c", "../pytest.ini", "../test_it.py")
    result.assert_outcomes(failed=1)
    assert "queries that lost most" in said(result)


def test_without_a_policy_it_says_where_to_name_one(shop: pytest.Pytester) -> None:
    (shop.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    result = outcome(shop, "karat_gate(shop.search, golden='golden.json')")
    result.assert_outcomes(failed=1)
    assert "UsageError: no policy" in said(result)
    assert "karat_policy in pytest.ini" in said(result)


# --- one query ---


def test_expectations_that_are_kept_pass(shop: pytest.Pytester) -> None:
    body = """
found = karat_expect(shop.service, "sort a list")
found.top(1, "list.sort", because="the shop says so").top(2, "sorted", because="it is next")
found.before("sorted", "csv", because="csv is none").before("csv", "x", because="x is none")
found.absent("str.join", because="no join").absent("csv", within=2, because="csv is none")
assert found.answer.doc_ids == ("list.sort", "sorted", "csv")
karat_expect(shop.empty, "bake a cake").nothing(because="no page is about cakes")
"""
    outcome(shop, body).assert_outcomes(passed=1)


def test_an_expectation_that_is_broken_says_why_it_was_there_and_what_came(
    shop: pytest.Pytester,
) -> None:
    body = """
found = karat_expect(shop.backwards, "sort a list")
found.top(1, "list.sort", because="ticket 12: nobody found list.sort")
"""
    result = outcome(shop, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>       found.top(1, "list.sort", because="ticket 12: nobody found list.sort")',
            'E       AssertionError: "sort a list": expected "list.sort" on top',
            "E         because: ticket 12: nobody found list.sort",
            'E         but "list.sort" is at rank 3 of 3',
            "E              1  csv",
            "E              2  sorted",
            "E         >    3  list.sort",
            "",
            "test_it.py:5: AssertionError",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('shop.dead, "a"', 'AssertionError: "a": the search failed: ConnectionError: refused'),
        ('shop.shapeless, "a"', "it returned a dict; expected a list; what came back: {'hits"),
        ('"shop", "a"', "UsageError: the search is 'shop', not a function"),
        ("shop.search, 7", "UsageError: the query is 7, not text"),
    ],
)
def test_a_search_that_does_not_answer_fails(shop: pytest.Pytester, call: str, told: str) -> None:
    result = outcome(shop, f"karat_expect({call})")
    result.assert_outcomes(failed=1)
    assert told in said(result)
    assert "src/karat" not in said(result)


def test_an_expectation_needs_a_reason(shop: pytest.Pytester) -> None:
    result = outcome(shop, 'karat_expect(shop.search, "join path").top(1, "csv", because=" ")')
    result.assert_outcomes(failed=1)
    assert "UsageError: the reason is ' '" in said(result)
    assert "src/karat" not in said(result)


# --- a project that has it and does not use it ---


def test_it_is_installed_as_an_entry_point_and_is_in_nobodys_way(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest("--strict-config", "--strict-markers", "-Werror")
    result.assert_outcomes(passed=1)
    result = pytester.runpytest("--fixtures", "-q")
    result.stdout.fnmatch_lines(["karat_gate*", "karat_expect*"])


def test_it_costs_nothing_until_it_is_used() -> None:
    code = "import sys, pytest; before = set(sys.modules); import karat.pytest_plugin; "
    code += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["karat", "karat.pytest_plugin"]


# --- the wheel, in a project of its own ---

PAGE = "docs/how-to/pytest.md"


def house(root: Path) -> ModuleType:
    """tests/house/test_docs.py, which knows how to run a page."""
    spec = importlib.util.spec_from_file_location(
        "house_test_docs_of_pytest", root / "tests/house/test_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def environment(root: Path, folder: Path) -> Path:
    """A virtual environment with a wheel of karat, and what it needs from this one; its programs.

    hatchling and the unpacking take 0.3 s, for nothing is downloaded or compiled.
    """
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    venv.EnvBuilder(symlinks=os.name != "nt", with_pip=False).create(folder / "venv")
    programs = Path(sysconfig.get_path("scripts", "venv", {"base": str(folder / "venv")}))
    place = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", place))
    [wheel] = (folder / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)  # all there is to installing what is pure Python
    # Its own packages stand first; a karat of this environment is linked by a .pth file, which
    # counts only in folders that Python itself looks for.
    there = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (packages / "outside.pth").write_text("".join(f"{each}\n" for each in there))
    script = programs / "pytest"
    script.write_text(f"#!{programs / 'python'}\nimport pytest\nraise SystemExit(pytest.main())\n")
    script.chmod(0o755)
    return programs


@pytest.mark.deep  # tests/house/test_docs.py runs the page with what is installed
def test_a_project_with_the_wheel_prints_what_the_page_shows(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = house(root)
    programs = environment(root, tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "PYTHON"))]:
        monkeypatch.delenv(name)
    page = docs.Page(project)
    page.environment["PATH"] = os.pathsep.join([str(programs), page.environment["PATH"]])
    code, output = page.bash("python -c 'import karat; print(karat.__file__)'")
    assert (code, Path(output.strip()).is_relative_to(tmp_path)) == (0, True), output
    text = (root / PAGE).read_text(encoding="utf-8")
    for block in docs.blocks(text):
        page.run(block, f"{PAGE}:{block.line}")
    for counts in ("2 passed in", "1 failed, 1 passed in"):  # the page shows both
        assert f"\n{counts} …s\n" in text


def test_a_project_may_import_karat_before_pytest_looks_for_plugins(
    pytester: pytest.Pytester,
) -> None:
    # pytest warns of a plugin's package that it cannot rewrite, and here warnings are errors.
    pytester.makepyfile(test_it="def test_it(karat_gate): pass")
    program = "import karat, pytest, sys; sys.exit(pytest.main(['-Werror', '-q']))"
    assert pytester.run(sys.executable, "-c", program).ret == 0


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.deep)])
def test_a_fixture_of_a_class_and_several_workers(shop: pytest.Pytester, workers: str) -> None:
    shop.makepyfile(
        test_it="""
        import pytest, shop

        @pytest.fixture(scope="class")
        def found(karat_gate):
            return karat_gate(shop.search)

        class TestSearch:
            def test_one(self, found): assert found.verdict == "pass"
            def test_two(self, found, karat_expect):
                karat_expect(shop.search, "join words").top(1, "str.join", because="it joins")
        """
    )
    shop.runpytest("-q", "-pno:cacheprovider", workers).assert_outcomes(passed=2)
