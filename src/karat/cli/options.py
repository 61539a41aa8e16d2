"""Options that several commands share, and their output stream."""

from __future__ import annotations

import gc
import io
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import Console

    from karat.reports.table import Table
    from karat.tables import Qrels

Command = TypeVar("Command", bound=Callable[..., object])

_PAGE, _NARROWEST = 80, 20  # columns
_COMMAND = re.compile(r"^\s*::|##\[")

FORMATS = ("table", "json", "csv", "md", "latex", "trec")


class Place(click.Path):
    """The type of a path, or of the address of events in S3."""

    def convert(self, value: Any, *_: Any) -> Any:
        from karat.tables.online.events import place

        return place(value)


def examples(*lines: str) -> str:
    """The epilog of a command's help: one to three example invocations."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def command(
    *lines: str, name: str | None = None, of: click.Group | None = None
) -> Callable[[Command], click.Command]:
    """A command, perhaps of a group, with examples below its help; named as its function is."""
    make = click.command if of is None else of.command
    return make(name, epilog=examples(*lines))


def group(*lines: str) -> Callable[[Command], click.Group]:
    """A group of commands, with examples below its help."""
    return click.group(epilog=examples(*lines))


def option(
    names: str, text: str, default: Any = None, *, show_default: bool = True, **how: Any
) -> Callable[[Command], Command]:
    """An option, by names such as ``-k --depth N``, its help and what ``click.option`` takes.

    A name without dashes, in lower case, is that of the parameter. If nothing stands for a value,
    it is a flag. Its default is in the help.
    """
    flags = [name for name in names.split() if name.startswith("-")]
    others = [name for name in names.split() if name not in flags]
    own = [name for name in others if name.islower() and name.isidentifier()]
    for value in (name for name in others if name not in own):
        how["metavar"] = value
    if default is not None or "/" in names:
        how |= {"default": default, "show_default": show_default and default is not None}
    elif not how.keys() & {"metavar", "type", "multiple"}:
        how["is_flag"] = True
    return click.option(*flags, *own, help=text, **how)


def together(*each: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one, in this order."""
    return lambda command: reduce(lambda to, option: option(to), reversed(each), command)


def measures(text: str) -> Callable[[Command], Command]:
    """``-m``, which may be repeated; the text is its help."""
    return option("-m --measure measures MEASURE", text, multiple=True)


rel = option(
    "-l --rel LEVEL",
    "Lowest grade that counts as relevant (trec_eval -l).  [default: 1]",
    type=float,
)
scale = option(
    "--scale LOW-HIGH", "Lowest and highest possible grade.  [default: 0 to the largest in QRELS]"
)
by = option(
    "--by ATTRIBUTE",
    "Slice by this attribute of the queries, by several (class,lang), by one of the documents "
    "(relevant.NAME, returned.NAME; NAME may be age), or by query_length, query_form (keyword or "
    "question), frequency_band (head, torso, tail), relevant_documents or first_relevant. "
    "NAME:quartiles makes four bands of numbers.",
    multiple=True,
)
queries = option("--queries FILE", "Attributes, weights and strata of the queries.")
part = option(
    "--part NAME",
    "Only queries of this part of the golden set: dev or held_out (see karat golden split). Each "
    "use of held_out is counted.",
)
complete = option("-c --complete", "Count every query of QRELS (trec_eval -c).")
depth = option("-M --depth N", "Cut rankings at N (trec_eval -M).", type=int)
judged_only = option("-J --judged-only", "Drop unjudged documents (trec_eval -J).")
fully_judged = option(
    "--fully-judged/--no-fully-judged",
    "Treat documents without a judgment as not relevant: no bounds, no judged shares.",
)
collapse = option(
    "--collapse COLUMN",
    "Collapse chunks into the document that this column of the documents names (parent_id).",
)
documents = option("--documents FILE", "The documents, for --collapse and --by.")
measures_from = option(
    "--measures-from MODULE",
    "A Python module that registers your own measures.",
    multiple=True,
    expose_value=False,
    callback=lambda _context, _option, modules: _load(modules),
)
input_format = option(
    "--input-format FORMAT",
    "Format of the runs, if not clear from their content: trec, msmarco, csv, tsv, jsonl, "
    "parquet, json.",
)
qrels_format = option("--qrels-format FORMAT", "Format of the judgments, likewise (also beir).")
all_notes = option("--notes all_notes", "Show all notes, not only the three most important.")
open_page = option("--open open_page", "Open the written page in the browser.")
page = together(option("--report FILE", "Also write a report: a single .html file."), open_page)
sliced = together(by, part, queries)
judgments = option(
    "--judgments SOURCE",
    "Whose judgments count: human, llm, clicks or import. QRELS is then the folder of a workspace, "
    "a golden set with sources, or a file of karat clicks judge.  [default: all; of a workspace "
    "those of people, and imported ones where people gave none]",
)
judged = together(rel, scale, complete, depth, judged_only, fully_judged, collapse, documents)
read = together(input_format, qrels_format, measures_from)
history = together(
    option("--history FILE", "Append the result to this history, for karat trend."),
    option(
        "--commit LABEL", "With --history: label of the code version.  [default: the commit of CI]"
    ),
    option("--corpus VERSION", "With --history: version of the corpus or index."),
    option(
        "--series NAME",
        "With --history: name of the series, independent of the run's name.  [default: the name "
        "recorded in the run, if any; else the run's name]",
    ),
)
"""Options of commands that append their result to a history."""


def _person(_context: click.Context, _option: click.Parameter, name: str | None) -> str:
    from karat.errors import UsageError
    from karat.workflows.offline.parts import user

    person = (user() if name is None else name).encode("utf-8", "replace").decode().strip()
    if not person:
        raise UsageError("--by: the name is empty", fix="--by NAME")
    return person


acting = option(
    "--by NAME",
    "Who does it.  [default: the user logged in]",
    envvar="KARAT_USER",
    callback=_person,
)
machine_grades = together(
    option(
        "--machine-grades JUDGE",
        "Estimate means from people's grades and this judge's: its name in karat.toml, or a file "
        "of karat autojudge run -o. QRELS must be of a random sample of its queries.",
    ),
    option(
        "--chances FILE",
        "With --machine-grades: the chance of each judged pair to be judged (query_id, doc_id, "
        "chance), where people judged pairs and not whole queries.",
    ),
)


def output(*formats: str) -> Callable[[Command], Command]:
    return option("-f --format output", "Output format.", formats[0], type=click.Choice(formats))


def _load(modules: tuple[str, ...]) -> None:
    if not modules:
        return
    from karat.measures.registry import load_module

    for module in modules:
        load_module(module)


def folder(path: str) -> str | None:
    return path if os.path.isdir(path) else None  # noqa: PTH112 - False for any odd name


def documents_in(qrels: str, settings: Mapping[str, Any]) -> str | None:
    """The file of documents given, or the BEIR folder of the judgments if one is needed."""
    from karat.diagnosis.document_slices import of_documents

    given: str | None = settings["documents"]
    needed = settings["collapse"] or of_documents(settings["by"])
    return given or (folder(qrels) if needed else None)


@contextmanager
def importing() -> Iterator[None]:
    """Import without garbage collections: they find nothing, and take a seventh of a short run."""
    if "polars" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # later collections pass over what was imported
        gc.enable()


def out() -> Console:
    """The console on standard output; a pipe is COLUMNS wide, by default 80."""
    from karat.reports.writers.terminal import console

    if sys.stdout.isatty():
        return console(sys.stdout)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if re.fullmatch(r"[1-9]\d{0,4}", columns, re.ASCII) else _PAGE
    return console(cast(IO[str], _Piped(sys.stdout)), max(_NARROWEST, width))


def emit(report: ModuleType, result: Any, output: str, **how: Any) -> None:
    """Print a result by its module of ``reports``: tables by ``show``, else by ``to_FORMAT``.

    The functions may be those of the module, or of what its ``answer`` makes of the result.
    """
    from karat.reports.writers.plain import to_json

    if output == "json":
        text = getattr(report, "to_json", to_json)(result)
    elif hasattr(report, "answer"):
        answer = report.answer(result)
        if output == "table":
            answer.show(out(), **how)
            return
        text = answer.to_markdown()
    elif output == "table":
        report.show(result, out(), **how)
        return
    else:
        text = getattr(report, {"md": "to_markdown"}.get(output, f"to_{output}"))(result)
    sys.stdout.write(text)
    sys.stdout.flush()


def print_json(content: Any) -> None:
    """Print a record, a dictionary, or a list of them, as JSON."""
    from karat.reports.writers.plain import to_json

    sys.stdout.write(to_json(content))
    sys.stdout.flush()


def print_or_show(content: Any, output: str, show: Callable[[Console], None]) -> None:
    """Print content as JSON, or show it in the terminal."""
    if output == "json":
        print_json(content)
    else:
        show(out())


def print_rows(table: Table, content: Any, output: str) -> None:
    """Print a table, if it has rows, and its notes; or its content as JSON."""
    from karat.reports.writers.tables import draw

    if output == "json":
        print_json(content)
        return
    if table.rows:
        draw(table, out())
    for note in table.notes:
        print(note)


def emit_entries(report: ModuleType, found: Sequence[Any], output: str, *, one: bool) -> None:
    """Print the entries of a catalogue by its module of ``reports``, or its first in full."""
    if output == "json":
        rows = [report.as_json(entry) for entry in found]
        print_json(rows[0] if one else rows)
    elif output == "md":
        print(report.markdown(found), end="")
    elif one:
        report.show_entry(found[0], out())
    else:
        report.show_entries(found, out())


def notes_aside(notes: Sequence[str]) -> None:
    """Print notes on standard error, for formats that cannot hold them."""
    for note in notes:
        print(f"karat: {note}", file=sys.stderr)


class _Piped(io.TextIOBase):
    """Standard output to a file or pipe, without trailing blanks and workflow commands.

    GitHub Actions runs an output line that begins with ``::`` or contains ``##[`` as a command;
    ids and texts are untrusted.
    """

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self._stream, self._rest = stream, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        self._stream.write("".join(f"{_harmless(line)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        if self._rest:
            self._stream.write(_harmless(self._rest))
            self._rest = ""
        self._stream.flush()


def _harmless(line: str) -> str:
    # A zero-width space breaks up workflow commands.
    return _COMMAND.sub(lambda match: f"{match[0][:-1]}\u200b{match[0][-1]}", line.rstrip(" "))


def fill_defaults(
    settings: dict[str, Any], qrels: str, judgments: Qrels, keys: Collection[str] | None = None
) -> None:
    """Fill options that were not given with the defaults of ``karat.toml``, and report them.

    Only those of ``keys``, if given; if there are none, no file is looked for.
    """
    from pathlib import Path

    from karat.cli.mistakes import printable
    from karat.tables.workspace import DEFAULTS
    from karat.workflows.offline.defaults import fill_defaults as fill

    keys = DEFAULTS if keys is None else keys
    note = fill(Path(), settings, qrels, judgments, keys) if keys else ""
    if note:
        print(f"karat: {printable(note)}", file=sys.stderr)
    if "fully_judged" in settings:
        settings["fully_judged"] = bool(settings["fully_judged"])


def options_except(context: click.Context, known: Collection[str]) -> list[str]:
    """The options and arguments on the command line, except for the known ones."""
    return [
        option.opts[-1]
        for option in context.command.params
        if option.name not in known
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
