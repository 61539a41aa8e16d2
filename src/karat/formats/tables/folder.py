"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from karat.errors import Advice, InputError

_NAMED = 12  # splits that an error names
_PACKED = ("", ".gz", ".zst", ".bz2")
_T = TypeVar("_T")
_FILES = {"queries": "queries.jsonl", "documents": "corpus.jsonl"}


def in_folder(folder: Path, role: str) -> Path:
    """The file of a BEIR folder that holds a table.

    Raises:
        InputError: it holds none, or several splits of qrels of which none is ``test``.
    """
    if role == "run":
        raise InputError(
            "this is a folder, and a run is a file", file=str(folder), fix="name a file in it"
        )
    if role == "qrels":
        return _split(folder)
    for packed in _PACKED:
        if (file := folder / (_FILES[role] + packed)).is_file():
            return file
    raise InputError(
        f"this folder has no {_FILES[role]}, so it is no BEIR folder with {role}",
        file=str(folder),
        fix=_instead(_FILES[role]),
    )


def _instead(lacking: str) -> Advice:
    """What helps where a folder lacks a file; a page has it from a ZIP file."""
    return Advice(
        "name a file instead",
        page=f"put {lacking} into the ZIP file too, or send its files one by one",
    )


def _split(folder: Path) -> Path:
    within = folder / "qrels" if (folder / "qrels").is_dir() else folder
    splits = {
        file.name.removesuffix(packed).removesuffix(".tsv"): file
        for packed in _PACKED
        for file in sorted(within.glob(f"*.tsv{packed}"))
    }
    if not splits:
        raise InputError(
            "this folder has no qrels/*.tsv, so it is no BEIR folder with judgments",
            file=str(folder),
            fix=_instead("qrels/test.tsv"),
        )
    return one_split(splits, str(folder), f"name one: {within / (min(splits) + '.tsv')}")


def one_split(splits: Mapping[str, _T], file: str, fix: str) -> _T:
    """The split of qrels that is meant: ``test``, or the only one.

    Args:
        splits: At least one, by name.
        file: What messages call the folder, or the ZIP file that it lies in.
        fix: What helps at the command line where there are several.

    Raises:
        InputError: there are several, and none is ``test``.
    """
    if "test" in splits:
        return splits["test"]
    if len(splits) == 1:
        return next(iter(splits.values()))
    names = ", ".join(sorted(splits)[:_NAMED]) + (", …" if len(splits) > _NAMED else "")
    raise InputError(
        f"this folder has several splits ({names}) and none is called test",
        file=file,
        fix=Advice(fix, page="leave one of them in the ZIP file, or send it alone"),
    )
