"""The sidecar of a run, ``bm25.trec.about.json``, with what the run's format cannot store.

That is its ``about``, and the states of queries if the format stores only documents. It records the
size and SHA-256 of the run, so that a run rewritten by another program is not read with an outdated
description. A file written by hand may omit these if it has no answers: ``about`` is only shown,
but answers change which queries count as missing or failed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any

import polars as pl

from karat.errors import InputError
from karat.formats.tables.cells import Careful
from karat.formats.tables.format import details_of
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import Source, shown
from karat.tables import Run
from karat.tables.about import facts, flat

ENDING = ".about.json"
MARK = "karat_about"
_VERSION = 1
_MARKED = 100  # the mark is within the first 100 bytes


def place_of(path: str | Path) -> Path:
    """The path of a run's sidecar: next to the file itself, links resolved."""
    target = Path(path).resolve()
    return target.with_name(target.name + ENDING)


def read(path: str | Path) -> tuple[dict[str, str], pl.DataFrame | None]:
    """The about and the answers in a run's sidecar; empty if there is none."""
    try:
        place = place_of(path)
        if str(path) == "-" or not place.is_file():
            return {}, None
    except (OSError, ValueError, RuntimeError):
        return {}, None
    name = shown(f"{path}{ENDING}")
    about, answers, run_content = load(place, name)
    if run_content is not None and run_content != _content(Path(path)):
        raise InputError(
            f"{shown(Path(path).name)} has changed since this description of it was written",
            file=name,
            fix="delete it, or write the run with karat again",
        )
    return about, answers


def refuse_without_rows(
    answers: pl.DataFrame, with_rows: Collection[str], path: str | Path
) -> None:
    """Raise InputError if a query is ``ok`` in a sidecar and has no rows in the run."""
    ok = answers.filter(pl.col("state") == "ok")["query_id"]
    lacking = ok.filter(~ok.is_in(list(with_rows)))
    if lacking.len():
        raise InputError(
            f"the state is ok, but {shown(Path(path).name)} has no documents for the query",
            file=shown(f"{path}{ENDING}"),
            query=lacking[0],
            fix='set the state to "empty" or "failed", or write the run again',
        )


def load(place: Path, name: str) -> tuple[dict[str, str], pl.DataFrame | None, Any]:
    """The content of a sidecar: about, answers, and the size and SHA-256 of the run."""
    try:
        with Source(place) as source:
            content = parsed(source.whole(), name, 1)
    except InputError as error:  # not NothingIn: the run is not empty, which a gate would act on
        raise _damaged(name, error.what) from None
    if not isinstance(content, dict) or not isinstance(content.get("about", {}), dict):
        raise _damaged(name, 'not an object with "about"')
    about = flat(content.get("about", {}), name)
    answers, run_content = _answers(content.get("answers"), name), content.get("run")
    if answers is not None and run_content is None:
        raise InputError(
            '"answers" without "run", the size and SHA-256 of the run',
            file=name,
            fix='remove "answers", or store states in a JSONL or Parquet run',
        )
    return about, answers, run_content


def _answers(rows: Any, name: str) -> pl.DataFrame | None:
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _damaged(name, '"answers" is not a list of objects')
    careful = Careful(name, unit="answer")
    known = ("state", "latency_us", "error", "repeated")
    for number, row in enumerate(rows, 1):
        fields = {key: row[key] for key in known if key in row}
        careful.add({"query_id": row.get("query_id"), "state": "ok", **fields}, number)
    return careful.frame() if rows else None


def _damaged(name: str, why: str) -> InputError:
    return InputError(
        f"the description of the run is damaged: {why}",
        file=name,
        fix='delete it to read the run alone, or write {"about": {"engine": "…", …}}',
    )


def writer(run: Run, path: Path, keeps: frozenset[str]) -> Callable[[Path], None] | None:
    """A function that writes the sidecar, given the run's finished file; None if none is needed."""
    about = {} if "about" in keeps else facts(flat(run.about, run.source))
    answers = [] if "answers" in keeps else _told(run)
    if not about and not answers:
        return None

    def write(finished: Path) -> None:
        from karat.formats.tables.writing import beside

        content: dict[str, Any] = {MARK: _VERSION, "run": _content(finished), "about": about}
        if answers:
            content["answers"] = answers
        with beside(place_of(path)) as stream:
            _dump(content, stream)

    return write


def remove(path: Path) -> None:
    """Remove a sidecar that karat wrote for an earlier run; one written by hand stays."""
    place = place_of(path)
    if place.is_file() and f'"{MARK}"'.encode() in place.read_bytes()[:_MARKED]:
        place.unlink()


def _told(run: Run) -> list[dict[str, Any]]:
    """The answers of a run, if they add anything to its rows."""
    columns = details_of(run)
    if not columns and (run.answers["state"] == "ok").all():
        return []
    rows = run.answers.select("query_id", "state", *columns).iter_rows(named=True)
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def _dump(content: dict[str, Any], stream: IO[bytes]) -> None:
    """Keys and answers one per line, for readable diffs."""
    head = {key: value for key, value in content.items() if key != "answers"}
    text = json.dumps(head, ensure_ascii=False, indent=2)
    if "answers" in content:
        rows = ",\n".join(
            f"    {json.dumps(row, ensure_ascii=False)}" for row in content["answers"]
        )
        text = f'{text.removesuffix("}").rstrip()},\n  "answers": [\n{rows}\n  ]\n}}'
    stream.write(f"{text}\n".encode())


def _content(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        return {"bytes": size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}
