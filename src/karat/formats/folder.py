"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from pathlib import Path

from karat.errors import Advice, InputError

_PACKED = ("", ".gz", ".zst", ".bz2")
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
    if "test" in splits:
        return splits["test"]
    if len(splits) == 1:
        return next(iter(splits.values()))
    if not splits:
        raise InputError(
            "this folder has no qrels/*.tsv, so it is no BEIR folder with judgments",
            file=str(folder),
            fix=_instead("qrels/test.tsv"),
        )
    raise InputError(
        f"this folder has several splits ({', '.join(sorted(splits))}) and none is called test",
        file=str(folder),
        fix=Advice(
            f"name one: {within / (min(splits) + '.tsv')}",
            page="leave one of them in the ZIP file, or send it alone",
        ),
    )
