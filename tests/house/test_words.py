"""Words: plain English in the terms of the field.

WORDS lists phrases that readers stumble over, and what to write instead. The test reads the
strings, docstrings and comments of the source, the templates, the scripts and the documentation.
A sentence that really means it goes into ALLOWED, with its file.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A regular expression, without regard to case: what to write instead. A blank is any white space.
WORDS = {
    # inverted order, and negations of nouns
    r"(?<!there\s)(is|are) no (?!longer)[a-z]+": "is not a …",
    r"nobody": "no user, no rater; or the passive voice: is not judged",
    r"whoever": "anyone who, the user who",
    r"(which|that) there (is|are) not": "unknown …",
    r"(is|are) wanted": "expected …, got …",
    r"such there (is|are)": "if there are any",
    # reporting
    r"(?<!are\s)told": "reported, shown, detected",
    r"tells? (that|what|which|whether|how|where|when|of)": "reports, shows, describes",
    r"tells? apart|telling apart": "distinguishes",
    r"(is|are|was) said": "is reported",
    r"(what )?became of": "outcome, status",
    r"what (it|they) comes? to": "result",
    r"without a word": "silently",
    r"(cannot|can not|could not) be told": "is unknown, is not available",
    # state
    r"stands? (twice|beside|above|below|first|last|there|in|on|at)": "is; twice: duplicate",
    r"as (it|they) stands?": "current",
    r"beside": "next to, with, in addition to",
    r"held against": "compared with",
    r"(in|of) no (mean|number|list|agreement|account)": "excluded from",
    r"at hand": "available",
    r"(is|are|was|were) there already": "already exists",
    # actions
    r"mend(s|ed|ing)?": "fix",
    r"tak(e|es|en|ing) away|took away": "remove, delete",
    r"tak(e|es|en|ing) back|took back": "undo",
    r"(bring|brings|brought|bringing) (in|back)": "import, upload; restore",
    r"tak(e|es|en|ing) in": "import, include",
    r"(comes?|came|coming) back in": "import, restore",
    r"shut out": "disabled, locked out",
    r"may come in": "active, can sign in",
    r"goes by|go by": "uses, follows",
    r"drawn towards": "shrunk towards",
    r"by the toss of a coin": "at random",
    # terms
    r"robots?(?!\.txt)": "bot",
    r"doors?": "entry point",
    r"the log cannot (say|tell)": "not available, with the reason",
    r"kept (runs?|comparisons?|evaluations?|pages?|results?)": "stored …",
    r"(?<!to\s)judge next": "judging priorities",
    r"moved documents|documents that moved": "rank changes",
    r"weight 0, aside": "zero weight",
    r"knows no": "does not support",
    r"(has|have|had) no place for": "cannot represent",
    r"hangs? together": "are correlated",
    r"(by|of) luck": "by chance",
    r"not to be trusted": "not reliable",
    r"so many (queries|searches|documents|users|people|raters|judgments)": "this many, at least N",
    r"say(s|ing)? it (again )?in other words": "reformulate",
    r"do(es)? not exist, and|people who do not exist": "simulated users",
}

# File: what its sentence says, where it really means it.
ALLOWED: dict[str, tuple[str, ...]] = {
    "docs/how-to/worst-queries.md": ("nobody clicks",),  # the value of a field
    "src/karat/online/worst.py": ("nobody clicks",),
    "src/karat/tables/online/worst_queries.py": ("nobody clicks",),
    "src/karat/formats/events/rows.py": ("robots told",),  # a key that event stores hold
    "src/karat/workflows/online/_import_notes.py": ("robots told",),
    "src/karat/measures/no_answer.py": ("is no better than chance",),
    "src/karat/workflows/accounts/accounts.py": ("shut out",),  # an action that audit logs hold
}

# Printed from the code, which is read itself.
PRINTED = {
    f"docs/reference/{name}.md"
    for name in ("api", "cli", "measures", "online-metrics", "python", "tables")
}
# Rows that quote the findings of lint and the verdicts of a gate are printed too.
QUOTED = re.compile(
    r"^\| (`[a-z0-9-]+` \| (error|warning|info)|.*\| (\*\*[\w ]+\*\*|passes) \(\d\)) \|.*$",
    re.MULTILINE,
)
CODE = re.compile(r"^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$|<!--.*?-->|`[^`]*`", re.MULTILINE | re.DOTALL)


def pattern(phrases: str) -> re.Pattern[str]:
    """What finds a phrase, or one of several."""
    blank = phrases.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w-])(?:{blank})(?![\w-])", re.IGNORECASE)


PATTERNS = {pattern(phrase): better for phrase, better in WORDS.items()}
ANY = pattern("|".join(WORDS))


def folders() -> list[str]:
    """The folders that are checked, each by itself."""
    source = sorted(path.name for path in (ROOT / "src/karat").iterdir() if path.is_dir())
    docs = sorted(path.name for path in (ROOT / "docs").iterdir() if path.is_dir())
    return [
        ".",
        "docs",
        *(f"docs/{name}" for name in docs if name not in {"decisions", "images"}),
        "src/karat",
        *(f"src/karat/{name}" for name in source if name != "__pycache__"),
    ]


def files(folder: str) -> Iterator[Path]:
    """The files of a folder that hold words: of the first level only where others have the rest."""
    here = ROOT / folder
    for path in sorted(here.glob("*") if folder in {".", "docs", "src/karat"} else here.rglob("*")):
        if path.suffix in {".py", ".j2", ".js", ".md"} and path.is_file():
            in_root = folder == "."
            if not in_root or path.name in {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}:
                yield path


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text without what matches; its lines keep their numbers."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n") or " ", text)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the line on which it begins."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".md":
        yield 1, blank(blank(source, QUOTED), CODE) if name not in PRINTED else ""
    elif path.suffix == ".py":
        if ANY.search(BROKEN.sub(" ", JOINED.sub("", source))):  # reading its strings takes long
            yield from python_strings(source)
        tails = (line.partition("#")[2].lstrip("#: ") for line in source.splitlines())
        if ANY.search(blank("\n".join(tails), SAID)):  # telling comments from strings takes long
            yield from python_comments(source)
    else:
        yield 1, source


JOINED = re.compile(r"""["']\s*f?["']""")  # within a text that is written in several strings
BROKEN = re.compile(r"\\[nt]")
SAID = re.compile(r"``[^`]*``|^ +\w+(?=: )", re.MULTILINE)


def python_strings(source: str) -> Iterator[tuple[int, str]]:
    """Strings of several words, and docstrings; names of things are left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, blank(node.value, SAID)


def python_comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments, those of consecutive lines as one; names of things are left out."""
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("#: ")
            if comments and comments[-1][0] + comments[-1][1].count("\n") + 1 == line:
                comments[-1] = (comments[-1][0], f"{comments[-1][1]}\n{text}")
            else:
                comments.append((line, text))
    yield from ((line, blank(text, SAID)) for line, text in comments)


def complaints(name: str, first: int, text: str) -> Iterator[str]:
    """Each phrase of WORDS in a text: file, line, phrase, and what to write instead."""
    for allowed in ALLOWED.get(name, ()):
        text = blank(text, re.compile(r"\s+".join(map(re.escape, allowed.split()))))
    if not ANY.search(text):  # one pass over most texts
        return
    for pattern, better in PATTERNS.items():
        for match in pattern.finditer(text):
            line = first + text.count("\n", 0, match.start())
            phrase = " ".join(match[0].split())
            yield f"{name}:{line}: “{phrase}”: rather {better}"


@pytest.mark.parametrize("folder", folders())
def test_the_words_are_plain(folder: str) -> None:
    found = [
        complaint
        for path in files(folder)
        for first, text in texts(path)
        for complaint in complaints(path.relative_to(ROOT).as_posix(), first, text)
    ]
    assert not found, f"{len(found)} phrases:\n" + "\n".join(found)


def test_what_is_allowed_is_there() -> None:
    for name, sentences in ALLOWED.items():
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for sentence in sentences:
            assert sentence in text, f"{name} no longer says {sentence!r}: delete it from ALLOWED"


# The checks above, checked.


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("runid is no measure", ["is no measure"]),
        ("There is no measure; there\nare no runs, and it is no longer there", []),
        ("the query stands\n    twice", ["stands twice"]),
        ("Mend it, amend it, recommended", ["Mend"]),
        ("robots.txt, is_robot, Robots", ["Robots"]),
        ("two baselines, and one is wanted", ["is wanted"]),
    ],
)
def test_phrases_are_found(text: str, phrases: list[str]) -> None:
    found = [complaint.split("“")[1].split("”")[0] for complaint in complaints("page.md", 1, text)]
    assert found == phrases


def test_strings_and_comments_are_read() -> None:
    source = (
        '"""One word."""\nx = f"two {1}"  # three\n# four\n# five\ny = ("six " "seven", ``eight``)'
    )
    source = source.replace(", ``eight``", "")
    read = [*python_strings(source), *python_comments(source)]
    assert [text for _, text in read] == [
        "One word.",
        "six seven",
        "two ",
        "three\nfour\nfive",
    ]


def test_code_of_a_page_is_not_read() -> None:
    page = "a\n```text\nnobody\n```\n`nobody` <!-- nobody -->\n| `x-y` | error | nobody |\nb"
    read = blank(blank(page, QUOTED), CODE)
    assert "nobody" not in read
    assert read.count("\n") == page.count("\n")
