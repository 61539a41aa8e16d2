"""Options that several commands share, and where their output goes."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables import Qrels

Command = TypeVar("Command", bound=Callable[..., object])

_PAGE, _NARROWEST = 80, 20  # columns
_COMMAND = re.compile(r"^\s*::|##\[")

FORMATS = ("table", "json", "csv", "md", "latex", "trec")


def examples(*lines: str) -> str:
    """The end of a command's help: commands as somebody types them, one to three."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


rel = click.option(
    "-l",
    "--rel",
    type=float,
    metavar="LEVEL",
    help="Lowest grade that counts as relevant (trec_eval -l).  [default: 1]",
)
scale = click.option(
    "--scale",
    metavar="LOW-HIGH",
    help="Lowest and highest grade a judgment can give.  [default: 0 to the largest in QRELS]",
)
by = click.option(
    "--by",
    multiple=True,
    metavar="ATTRIBUTE",
    help="Slice by this attribute of the queries, by several (class,lang), by one of the documents "
    "(relevant.NAME, returned.NAME; NAME may be age), or by query_length, query_form (keyword or "
    "question), frequency_band (head, torso, tail), relevant_documents or first_relevant. "
    "NAME:quartiles makes four bands of numbers.",
)
queries = click.option(
    "--queries", metavar="FILE", help="Attributes, weights and strata of the queries."
)
part = click.option(
    "--part",
    metavar="NAME",
    help="Only queries of this part of the golden set: dev or held_out (see karat golden split). "
    "Each use of held_out is counted.",
)
complete = click.option(
    "-c", "--complete", is_flag=True, help="Every query of QRELS counts (trec_eval -c)."
)
depth = click.option(
    "-M", "--depth", type=int, metavar="N", help="Cut rankings at N (trec_eval -M)."
)
judged_only = click.option(
    "-J", "--judged-only", is_flag=True, help="Drop unjudged documents (trec_eval -J)."
)
fully_judged = click.option(
    "--fully-judged/--no-fully-judged",
    default=None,
    help="Declare that documents without a judgment are not relevant: no bounds, no judged shares.",
)
collapse = click.option(
    "--collapse",
    metavar="COLUMN",
    help="Fold chunks into the document this column of the documents names (parent_id).",
)
documents = click.option(
    "--documents", metavar="FILE", help="The documents, for --collapse and --by."
)
measures_from = click.option(
    "--measures-from",
    multiple=True,
    expose_value=False,
    callback=lambda _context, _option, modules: _load(modules),
    metavar="MODULE",
    help="A Python module that registers measures of your own.",
)
input_format = click.option(
    "--input-format",
    metavar="FORMAT",
    help="Format of the runs, where their content does not tell: trec, msmarco, csv, tsv, jsonl, "
    "parquet, json.",
)
qrels_format = click.option(
    "--qrels-format", metavar="FORMAT", help="The same for the judgments (also beir)."
)


all_notes = click.option(
    "--notes", "all_notes", is_flag=True, help="All notes, and not only the three that matter most."
)


open_page = click.option(
    "--open", "open_page", is_flag=True, help="Open the page that is written in the browser."
)


def history(command: Command) -> Command:
    """Options of what adds its result to a history."""
    for option in (
        click.option(
            "--series",
            metavar="NAME",
            help="With --history: the series it belongs to, whatever the run is called.  "
            "[default: the name recorded in the run, if any; else the run's name]",
        ),
        click.option("--corpus", metavar="VERSION", help="With --history: which corpus or index."),
        click.option(
            "--commit",
            metavar="LABEL",
            help="With --history: which code.  [default: the commit that CI names]",
        ),
        click.option(
            "--history", metavar="FILE", help="Add the result to this history, for karat trend."
        ),
    ):
        command = option(command)
    return command


def output(*formats: str) -> Callable[[Command], Command]:
    """How to print: the first format is the default."""
    return click.option(
        "-f",
        "--format",
        "output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to print it.",
    )


def _load(modules: tuple[str, ...]) -> None:
    if not modules:
        return
    from karat.measures.registry import load_module

    for module in modules:
        load_module(module)


def folder(path: str) -> str | None:
    """The path if it is a folder: a BEIR folder holds queries and documents too."""
    return path if os.path.isdir(path) else None  # noqa: PTH112 - False for any odd name


def documents_in(qrels: str, settings: Mapping[str, Any]) -> str | None:
    """The documents given, or those of a BEIR folder of judgments where they are needed."""
    from karat.diagnosis.document_slices import of_documents

    given: str | None = settings["documents"]
    needed = settings["collapse"] or of_documents(settings["by"])
    return given or (folder(qrels) if needed else None)


def out() -> Console:
    """The console on standard output; a pipe is as wide as COLUMNS says, or as a page."""
    from karat.reports.writers.terminal import console

    if sys.stdout.isatty():
        return console(sys.stdout)
    said = os.environ.get("COLUMNS", "")
    width = int(said) if re.fullmatch(r"[1-9]\d{0,4}", said, re.ASCII) else _PAGE
    return console(cast(IO[str], _Piped(sys.stdout)), max(_NARROWEST, width))


class _Piped(io.TextIOBase):
    """Standard output into a file or a pipe: lines end where their text does, and command nothing.

    A build server reads what is printed, and GitHub's takes a line that begins with ``::``, or
    holds ``##[``, for a command; ids and texts come from strangers.
    """

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self._stream, self._rest = stream, ""

    def write(self, text: str) -> int:
        """Write the lines that are whole."""
        *lines, self._rest = (self._rest + text).split("\n")
        self._stream.write("".join(f"{_harmless(line)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Write what there is of the last line."""
        if self._rest:
            self._stream.write(_harmless(self._rest))
            self._rest = ""
        self._stream.flush()


def _harmless(line: str) -> str:
    """A line without blanks at its end, in which a character of no width breaks commands."""
    return _COMMAND.sub(lambda found: f"{found[0][:-1]}\u200b{found[0][-1]}", line.rstrip(" "))


def fill_defaults(
    given: dict[str, Any], qrels: str, judgments: Qrels, keys: Collection[str] | None = None
) -> None:
    """Put the defaults of ``karat.toml`` where options were not given, and report them.

    Args:
        given: Options by name; changed in place.
        qrels: Where the judgments were read.
        judgments: The judgments.
        keys: Which of them; all if None. Empty for none: no file is looked for.
    """
    from pathlib import Path

    from karat.cli.mistakes import printable
    from karat.tables.workspace import DEFAULTS
    from karat.workflows.offline.defaults import fill_defaults as fill

    keys = DEFAULTS if keys is None else keys
    said = fill(Path(), given, qrels, judgments, keys) if keys else ""
    if said:
        print(f"karat: {printable(said)}", file=sys.stderr)
    if "fully_judged" in given:
        given["fully_judged"] = bool(given["fully_judged"])


def typed_besides(context: click.Context, known: Collection[str]) -> list[str]:
    """The options and arguments that were typed, but for those of some names."""
    return [
        option.opts[-1]
        for option in context.command.params
        if option.name not in known
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
