"""Files in BEIR folders: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from karat.errors import InputError

_NAMED = 12  # splits listed in an error
_PACKED = ("", ".gz", ".zst", ".bz2")
_T = TypeVar("_T")
_FILES = {"queries": "queries.jsonl", "documents": "corpus.jsonl"}


def in_folder(folder: Path, role: str) -> Path:
    """The file of a BEIR folder with the table of a role."""
    if role == "run":
        raise InputError(
            "expected a run file, got a folder", file=str(folder), fix="name a file in it"
        )
    if role == "qrels":
        return _split(folder)
    for packed in _PACKED:
        if (file := folder / (_FILES[role] + packed)).is_file():
            return file
    raise InputError(
        f"not a BEIR folder with {role}: it has no {_FILES[role]}",
        file=str(folder),
        fix=_instead(_FILES[role]),
    )


def _instead(lacking: str) -> str:
    return f"add {lacking}, or give its files one by one"


def _split(folder: Path) -> Path:
    within = folder / "qrels" if (folder / "qrels").is_dir() else folder
    splits = {
        file.name.removesuffix(packed).removesuffix(".tsv"): file
        for packed in _PACKED
        for file in sorted(within.glob(f"*.tsv{packed}"))
    }
    if not splits:
        raise InputError(
            "not a BEIR folder with judgments: it has no qrels/*.tsv",
            file=str(folder),
            fix=_instead("qrels/test.tsv"),
        )
    return one_split(splits, str(folder), f"{within / (min(splits) + '.tsv')}")


def one_split(splits: Mapping[str, _T], file: str, example: str) -> _T:
    """The split of qrels to read: ``test``, or the only one."""
    if "test" in splits:
        return splits["test"]
    if len(splits) == 1:
        return next(iter(splits.values()))
    names = ", ".join(sorted(splits)[:_NAMED]) + (", …" if len(splits) > _NAMED else "")
    raise InputError(
        f"this folder has several splits ({names}), none called test",
        file=file,
        fix=f"keep only one of them, or name one: {example}",
    )
