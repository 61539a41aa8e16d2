"""Expected texts: compared, or written again with ``--approve``."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection
from pathlib import Path

from tests.net.facts import facts_of

EXPECTED = Path(__file__).resolve().parent / "expected"
LONGEST = 60_000
"""Characters of a text that is kept whole; of a longer one its sum and its first lines."""
FIRST = 60
DIFF = 40
"""Lines of a difference that are shown."""


class Snapshots:
    """The texts of one folder below ``expected/``."""

    def __init__(self, folder: Path, *, approve: bool) -> None:
        self.folder = folder
        self.approve = approve

    def check(self, name: str, text: str) -> None:
        """Compare a text with the one that is kept under this name, or keep it."""
        path = self.folder / name
        text = text.replace("\r", "␍")  # which git and editors would lose
        text = shortened(text if text.endswith("\n") else f"{text}\n")
        if self.approve:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        assert kept == text, told(path.name, kept, text)

    def holds_only(self, names: Collection[str]) -> None:
        """Nothing is kept that no test compares; ``--approve`` removes it."""
        there = {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file()
        }
        left = sorted(there - set(names))
        if self.approve:
            for name in left:
                (self.folder / name).unlink()
            return
        assert not left, f"no test compares {', '.join(left)}: {APPROVE}"


APPROVE = "if it is meant to be so, run this test with --deep --approve, read git diff, commit it"


def shortened(text: str) -> str:
    """A text that is too long, as its first lines and the sum of all of it."""
    if len(text) <= LONGEST:
        return text
    lines = text.splitlines()
    first = "\n".join(line[:500] for line in lines[:FIRST])
    sums = _sum(text), _sum("\n".join(facts_of(text)))
    return f"{first}\n[{len(lines)} lines: sha256 {sums[0]}; of its numbers and keys: {sums[1]}]\n"


def _sum(text: str) -> str:
    # A number and a letter side by side could be read as a number: facts_of skips behind letters.
    return "x" + hashlib.sha256(text.encode()).hexdigest()


def told(name: str, kept: str, text: str) -> str:
    """What a comparison that failed says."""
    lines = list(
        difflib.unified_diff(
            kept.splitlines(), text.splitlines(), f"expected {name}", f"found {name}", "", "", 2, ""
        )
    )
    more = [f"[{len(lines) - DIFF} more lines]"] if len(lines) > DIFF else []
    return "\n".join(["another output than before", *lines[:DIFF], *more, APPROVE])
