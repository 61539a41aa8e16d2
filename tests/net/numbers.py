"""Did a number change, or only words?

    python tests/net/numbers.py REVISION

Compares each expected text that changed since a revision of git: of JSON its keys and values
(of a sentence, the numbers in it), of other texts the sequence of numbers. Ends with 1 if any of
these changed, came or went, and says which.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))

from tests.net.facts import facts_of  # noqa: E402 - a script finds it by the line above

SHOWN = 6
"""Changed facts of one text that are shown."""


def changed(root: Path, expected: str, revision: str) -> list[str]:
    """A line for each text whose numbers or keys are not those of the revision.

    Args:
        root: Of the repository.
        expected: Folder of the texts, from there.
        revision: What git calls the state to compare with.
    """
    # Renames are not followed: a test that keeps its text under another name is looked at.
    listed = _git(root, "diff", "--name-only", "--no-renames", "-z", revision, "--", expected)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", expected)
    found = []
    for name in sorted({*listed.split("\0"), *untracked.split("\0")} - {""}):
        old, new = _at(root, revision, name), root / name
        if old is None or not new.exists():
            found.append(f"{name}: {'new' if old is None else 'removed'}")
            continue
        before, after = facts_of(old), facts_of(new.read_text(encoding="utf-8"))
        if before != after:
            lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
            told = [each for each in lines if not each.startswith("@@")]
            more = ["…"] if len(told) > SHOWN else []
            found.append("\n    ".join([f"{name}:", *told[:SHOWN], *more]))
    return found


def _at(root: Path, revision: str, name: str) -> str | None:
    there = _git(root, "ls-tree", "--name-only", "-z", revision, "--", name)
    return _git(root, "show", f"{revision}:{name}") if there else None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)
    return done.stdout.decode("utf-8")


def main(arguments: list[str]) -> int:
    """Compare, print, and say by the exit code whether a number or a key changed."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = FOLDER.parents[1]
    found = changed(root, "tests/net/expected", arguments[0])
    print("\n".join(found) if found else "no number and no key changed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
