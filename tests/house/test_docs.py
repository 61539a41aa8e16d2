"""Every example in README.md and docs/ runs, and prints what the page shows.

- The blocks of a page run in order, in one directory: a tutorial can go on.
- ``python``: executed; the blocks of a page share their names. With ``>>>`` it is a doctest.
- ``bash``: executed, and must end with exit code 0.
- ``console``: lines after ``$`` are run (``>`` continues them). Where output follows, it must be
  equal but for spaces at line ends. ``…`` stands for anything within a line, and alone on a line
  for any lines. A command may fail only where ``$ echo $?`` follows and shows its exit code.
- Other languages (text, json, yaml, …) are shown and not run.
- ``<!-- not run: REASON -->`` just before a block leaves it out.
- ``<!-- deep: REASON -->`` just before a block runs it with --deep. Without, Python's imports are
  made, and calls of karat are looked at: there is such a function, or a command, and it takes that.
- ``<!-- needs: demo -->`` puts a finished demo into ``demo/`` and ``karat-demo/``; ``<!-- needs:
  postgresql -->`` puts the URL of an empty database into ``SEARCH_DB``; ``<!-- needs: quepid -->``
  writes ``case.json``, a Quepid case with its OpenSearch; ``<!-- needs: NAME -->`` puts
  ``../shared/data/NAME`` into ``NAME/``, or skips the page where that is absent.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest
from tests import quepid_case, warm_karat

from karat.cli.main import karat

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
]
RUN = {"bash", "console", "python"}
# Other spellings of the same would not be run, and nobody would notice.
MISSPELT = {"": "text", "py": "python", "pycon": "python", "sh": "bash", "shell": "bash"}
MARK = "\x1e"  # between the outputs of one console block
SECONDS = 300

FENCE = re.compile(
    r"^(?P<indent>[ ]*)(?P<fence>```+|~~~+)[ ]*(?P<language>[\w+-]*)[^\n`]*\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN = re.compile(r"<!--\s*not run\b(?::\s*(?P<reason>[^>]*?))?\s*-->\s*\Z")
# Pages whose examples take long or print numbers of the whole demo, and of whose commands tests/net
# and their own tests print more. A build looks at them without running them.
SLOW = {
    *(
        f"docs/how-to/{name}.md"
        for name in (
            "agreement",
            "certificate",
            "choose-queries",
            "clicks",
            "compare",
            "compare-with-trec_eval",
            "editions",
            "exchange",
            "gate",
            "import-events",
            "judge",
            "offline-beside-online",
            "online-metrics",
            "pytest",
            "rag-retrieval",
            "report",
            "review",
            "search-engines",
            "shadow",
            "slices",
            "trend",
            "try-changes",
            "watch",
            "worst-queries",
        )
    ),
    "docs/tutorials/from-log-to-gate.md",
    "docs/tutorials/golden-set.md",
    "docs/tutorials/your-own-corpus.md",
    "docs/tutorials/your-own-engine.md",
}
DEEP = re.compile(r"<!--\s*deep:\s*[^>]*?-->\s*\Z")
WORD = re.compile(r"[\w-]+")
INPUT = re.compile(r"<<(['\"]?)(?P<end>\w+)\1(?P<rest>.*\n)(?s:.*?)^(?P=end)$", re.MULTILINE)
NEEDS = re.compile(r"<!--\s*needs:\s*(?P<name>[\w-]+)\s*-->")
LINK = re.compile(
    r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)[^)]*\)|^\[[^\]]+\]:\s*(?P<ref>\S+)", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    body: str
    line: int  # of its first line within the page, from 1
    deep: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that are to be run."""
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        language = found["language"]
        better = MISSPELT.get(language)
        assert better is None, f"line {line - 1}: write ```{better} rather than ```{language}"
        left_out = NOT_RUN.search(text, 0, found.start())
        if left_out is None and language in RUN:
            deep = DEEP.search(text, 0, found.start()) is not None
            yield Block(language, textwrap.dedent(found["body"]), line, deep)
        elif left_out:
            assert left_out["reason"], f"line {line - 1}: say why: <!-- not run: REASON -->"


def commands(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif not found:
            assert not line.strip(), f"a console block starts with '$ ', not with {line!r}"
        else:
            command, output = found[-1]
            if line.startswith("> ") and not output:
                found[-1] = (f"{command}\n{line[2:]}", "")
            else:
                found[-1] = (command, f"{output}{line}\n")
    return found


def as_pattern(expected: str) -> str:
    """A regular expression for the output a page shows."""
    pattern = ""
    for line in tidy(expected).split("\n"):
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += re.escape(line).replace("…", r"[^\n]*") + r"\n"
    return pattern


def tidy(output: str) -> str:
    """The output without spaces at line ends, and without empty lines around it."""
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")


class Page:
    """The directory, the environment and the Python names that the blocks of a page share."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.names: dict[str, object] = {"__name__": "__main__"}
        folders = [warm_karat.start(), Path(sys.executable).parent, os.environ["PATH"]]
        programs = os.pathsep.join(str(folder) for folder in folders if folder)
        plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
        self.environment = {**os.environ, **plain, "PATH": programs}

    def run(self, block: Block, where: str) -> None:
        """Run one block; AssertionError or the block's own error if it does not do as it says."""
        match block.language:
            case "console":
                self.console(block.body, where)
            case "bash":
                code, output = self.bash(f"set -euo pipefail\n{block.body}")
                assert code == 0, f"{where} ended with {code}:\n{output}"
            case _ if ">>> " in block.body:
                test = doctest.DocTestParser().get_doctest(block.body, self.names, where, where, 0)
                said: list[str] = []
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
                runner.run(test, out=said.append, clear_globs=False)
                assert not runner.failures, "".join(said)
                self.names.update(test.globs)
            case _:
                exec(compile(block.body, where, "exec"), self.names)

    def bash(self, script: str) -> tuple[int, str]:
        """Run a script in the page's directory: its exit code, and all it printed."""
        bash = shutil.which("bash")
        if bash is None:
            pytest.skip("needs bash")
        done = subprocess.run(
            [bash, "-c", script],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    def console(self, body: str, where: str) -> None:
        """Run the commands of a block in one shell, and compare what each of them printed."""
        asked = commands(body)
        # After each command: its exit code behind a mark, and the code again for the next `$?`.
        mark = f"\ncode=$?; printf '{MARK}%s{MARK}' $code; (exit $code)\n"
        _, printed = self.bash("".join(f"{command}{mark}" for command, _ in asked))
        *pairs, _ = printed.split(MARK)
        outputs, codes = pairs[::2], pairs[1::2]
        assert len(outputs) == len(asked), f"{where}: the shell ended early:\n{printed}"
        after = [command.strip() for command, _ in asked[1:]] + [""]
        for (command, shown), output, code, then in zip(asked, outputs, codes, after, strict=True):
            here = f"{where}\n$ {command}\n"
            assert code == "0" or then == "echo $?", f"{here}ended with {code}:\n{output}"
            if shown.strip():
                same = re.fullmatch(as_pattern(shown), f"{tidy(output)}\n")
                assert same, f"{here}printed\n{output}\nand the page shows\n{shown}"


@pytest.mark.parametrize(
    "name", [pytest.param(p, marks=pytest.mark.deep if p in SLOW else ()) for p in PAGES]
)
def test_the_examples_of_a_page_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    asked = list(blocks(text))
    deep = request.config.getoption("deep")
    words = {word for each in asked if deep or not each.deep for word in WORD.findall(each.body)}
    for need in NEEDS.finditer(text):
        if need["name"] == "demo":
            for folder in words & {"demo", "karat-demo"}:
                shutil.copytree(request.getfixturevalue("built_demo") / "demo", tmp_path / folder)
        elif need["name"] == "postgresql":
            url = request.getfixturevalue("database")().replace("+psycopg", "")
            monkeypatch.setenv("SEARCH_DB", url)
        elif need["name"] == "quepid":
            url = request.getfixturevalue("films")
            (tmp_path / "case.json").write_text(json.dumps(quepid_case.case(url)))
        else:
            data = request.getfixturevalue("field_data") / need["name"]
            assert data.is_dir(), f"{name} needs {need['name']}, which ../shared/data has not"
            (tmp_path / need["name"]).symlink_to(data, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    page = Page(tmp_path)
    for block in asked:
        if block.deep and not deep:
            could_run(block, f"{name}:{block.line}")
        else:
            page.run(block, f"{name}:{block.line}")


@pytest.mark.parametrize("name", sorted(SLOW))
def test_the_examples_of_a_slow_page_could_run(name: str) -> None:
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        could_run(block, f"{name}:{block.line}")


@pytest.fixture
def films() -> Iterator[str]:
    with quepid_case.opensearch() as url:
        quepid_case.fill(url)
        yield url


def could_run(block: Block, where: str) -> None:
    """Look at a block without running it."""
    if block.language != "python":
        asked = commands(block.body) if block.language == "console" else [(block.body, "")]
        for command, _ in asked:
            could_type(command)
        return
    source = block.body
    if ">>> " in source:
        source = "".join(each.source for each in doctest.DocTestParser().get_examples(source))
    tree = ast.parse(source, where)
    names: dict[str, object] = {"karat": importlib.import_module("karat")}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), where, "exec"), names)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("karat"), name), arguments, keywords):
                if any(isinstance(each, ast.Starred) for each in arguments):
                    continue
                given = {each.arg or "": None for each in keywords}
                inspect.signature(getattr(names["karat"], name)).bind(*arguments, **given)


def could_type(script: str) -> None:
    """Look at the calls of karat in a script: there is such a command, and it has the options."""
    held = ""  # a line whose quotation goes on in the next
    for line in INPUT.sub(r"\g<rest>", script).replace("\\\n", " ").splitlines():
        words = shlex.shlex(held + line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        try:
            groups = itertools.groupby(list(words), lambda word: not word.strip("|&;<>"))
        except ValueError:
            held += f"{line}\n"
            continue
        held = ""
        for ends, group in groups:
            call = list(group)
            if ends or call[0] != "karat":
                continue
            command: click.Command | None = karat
            # A command keeps the help option that it was first asked for.
            context = click.Context(karat, **karat.context_settings)
            while isinstance(command, click.Group):
                del call[0]
                command = command.get_command(context, call[0])
            assert command is not None, f"karat {call[0]}: there is no such command"
            command.make_parser(click.Context(command, context)).parse_args(call[1:])
    assert not held, f"a quotation that does not end: {held}"


@pytest.mark.parametrize("name", PAGES)
def test_the_links_of_a_page_lead_somewhere(name: str) -> None:
    text = FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        target, _, anchor = (found["target"] or found["ref"]).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = (ROOT / name).parent / target if target else ROOT / name
        assert page.exists(), f"{name} links {target}: not there"
        if anchor and page.suffix == ".md":
            assert anchor in _anchors(page), f"{name} links #{anchor} of {page.name}: not there"


def _anchors(page: Path) -> set[str]:
    """What links to headings of a page say."""
    headings = re.findall(
        r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in plain}


# The checks above, checked.


def run_page(text: str, directory: Path) -> None:
    """Run the blocks of a page."""
    page = Page(directory)
    for block in blocks(text):
        page.run(block, "page:1")


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "printed"),
        ("```console\n$ printf 'one\\ntwo\\n'\none\n```\n", "printed"),
        ("```console\n$ false\n$ true\n```\n", "ended with 1"),
        ("```console\n$ false\n$ echo $?\n0\n```\n", "printed"),
        ("```console\n$ exit 0\n$ echo one\n```\n", "ended early"),
        ("```console\none\n```\n", "starts with"),
        ("```bash\nfalse\ntrue\n```\n", "ended with 1"),
        ("```python\nraise AssertionError('one is not two')\n```\n", "one is not two"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```sh\ntrue\n```\n", "write ```bash"),
        ("```\ntrue\n```\n", "write ```text"),
        ("<!-- not run -->\n```bash\nfalse\n```\n", "say why"),
        ("1. a list\n\n   ```bash\n   false\n   ```\n", "ended with 1"),
        ("<!-- not run: a -->\n```bash\ntrue\n```\n<!-- b -->\n```bash\nfalse\n```\n", "with 1"),
    ],
)
def test_an_example_that_is_wrong_is_found(page: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        run_page(page, tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ echo one   \none\n$ printf 'a  \\n'\na\n```\n",
        "```console\n$ cd /\n$ pwd\n/\n```\n",
        "```console\n$ (exit 3)\n$ echo $?\n3\n```\n",
        "```console\n$ echo \\\n> 'two words'\ntwo words\n```\n",
        "```console\n$ seq 5\n1\n…\n5\n$ echo took 3.2 s\ntook … s\n```\n",
        "```console\n$ echo no newline at the end | tr -d '\\n'\nno newline at the end\n```\n",
        "```python\nx = 1\n```\n\n```python\n>>> x + 1\n2\n```\n\n```python\nassert x == 1\n```\n",
        "<!-- not run: it deletes everything -->\n\n```bash\nfalse\n```\n",
        "```json\n{}\n```\n",
    ],
)
def test_an_example_that_is_right_is_not(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("import karat\nkarat.evaluate('q', 'r', masures='P@1')\n", TypeError),
        ("import karat\nkarat.evaluated('q', 'r')\n", AttributeError),
        ("from karat import evaluated\n", ImportError),
        ("karat.evaluate(\n", SyntaxError),
    ],
)
def test_an_example_that_waits_is_looked_at(body: str, error: type[Exception]) -> None:
    (block,) = blocks(f"<!-- deep: slow -->\n```python\n{body}```\n")
    assert block.deep
    with pytest.raises(error):
        could_run(block, "page:1")
    could_run(replace(block, body="import karat\nkarat.evaluate('q', 'r', measures='P@1')\n"), "")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("karat evaluated q r", AssertionError),
        ("karat golden status --nowhere", click.NoSuchOption),
        ("karat evaluate q r \\\n> -m nDCG --nowhere 2> file", click.NoSuchOption),
        ("cd there && karat evaluate q r -m", click.BadOptionUsage),
        ("cat <<'END' | karat evaluated q r\n> it's\n> END", AssertionError),
        ("echo 'two\n> lines'; karat evaluated q r", AssertionError),
        ("echo 'karat", AssertionError),
    ],
)
def test_a_command_that_waits_is_looked_at(line: str, error: type[Exception]) -> None:
    (block,) = blocks(f"<!-- deep: slow -->\n```console\n$ {line}\nkarat: --nothing\n```\n")
    with pytest.raises(error):
        could_run(block, "page:1")
    could_run(replace(block, body="$ karat evaluate 'q' r -m P@1 | head -3 # --like this\n"), "")
