"""Every error karat raises on purpose.

    KaratError                 exit 4   an operation failed, but not because of its arguments
    ├── InputError             exit 2   invalid data: file, line, query, and the fix
    │   └── CannotTell         exit 3   sound data that do not decide it: "cannot tell"
    ├── UsageError             exit 2   invalid arguments: the nearest valid choice, and the fix
    │   ├── LeaseLost          exit 2   another rater has the pair now (karat.store.sql.judgments)
    │   └── PolicyRefused      exit 1   a policy rejects it: the verdict is "fail"
    └── MissingExtra           exit 2   an optional dependency is not installed

The text of an error is ready to print, by the command line (which adds the prefix "karat: "), in
Python and on a page: a fix says what to do, rather than which option or button does it.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence
from typing import Any

_FULL = {errno.ENOSPC, errno.EFBIG} | ({errno.EDQUOT} if hasattr(errno, "EDQUOT") else set())

_SQLITE_FULL = 13


class KaratError(Exception):
    """Base of every error karat raises on purpose.

    Args:
        what: What is wrong, in one sentence without a full stop.
        fix: How to fix it.
        command: A shell command that does it, shown wherever there is a shell.
    """

    exit_code = 4

    def __init__(self, what: str, *, fix: str | None = None, command: str | None = None) -> None:
        self.what, self.fix, self.command = what, fix, command
        super().__init__(f"{what}\n  fix: {self.advice}" if self.advice else what)

    @property
    def advice(self) -> str | None:
        """The fix, with the command."""
        return f"{self.fix}: {self.command}" if self.fix and self.command else self.fix


class InputError(KaratError):
    """Invalid data.

    Args:
        what, fix, command: As for ``KaratError``.
        file: The file or table.
        line: Line number, from 1.
        query: Id of the query.
        doc_id: Id of the document; readers use it to find the line.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        line: int | None = None,
        query: str | None = None,
        doc_id: str | None = None,
        fix: str | None = None,
        command: str | None = None,
    ) -> None:
        where = [part for part in (file, f"line {line}" if line is not None else None) if part]
        text = f"{', '.join(where)}: {what}" if where else what
        if query is not None:
            text += f" (query {query})"
        super().__init__(text, fix=fix, command=command)
        self.what, self.file, self.line, self.query, self.doc_id = what, file, line, query, doc_id

    def at_line(self, line: int | None) -> InputError:
        """The same error with its line filled in."""
        return but(self, line=line)


class CannotTell(InputError):
    """The data are sound, but do not decide the question: the verdict is "cannot tell"."""

    exit_code = 3


def but(error: InputError, **changed: Any) -> InputError:
    """The same error with other facts, such as its file."""
    names = ("what", "file", "line", "query", "doc_id", "fix", "command")
    return InputError(**{name: getattr(error, name) for name in names} | changed)


class UsageError(KaratError):
    """Invalid arguments: a measure, an option, a combination.

    Args:
        what, fix, command: As for ``KaratError``.
        nearest: Valid choices that are similar; shown as "did you mean …?".
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        nearest: Sequence[str] = (),
        fix: str | None = None,
        command: str | None = None,
    ) -> None:
        suggestion = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(what + suggestion, fix=fix, command=command)
        self.what, self.nearest = what, tuple(nearest)


class PolicyRefused(UsageError):
    """The arguments are valid, but a policy rejects the request: the verdict is "fail"."""

    exit_code = 1


class MissingExtra(KaratError):
    """An optional dependency is not installed.

    Args:
        package: The missing package, or all packages if several are needed.
        extra: The extra that installs it, or several with commas.
        purpose: The feature that needs it.
    """

    exit_code = 2

    def __init__(self, package: str | Sequence[str], extra: str, purpose: str) -> None:
        self.packages = [package] if isinstance(package, str) else list(package)
        self.extra, self.purpose = extra, purpose
        what = "package" if len(self.packages) == 1 else "packages"
        super().__init__(
            f"{purpose} needs the {what} {', '.join(self.packages)}",
            fix=f"pip install 'karat[{extra}]'",
        )


def is_disk_full(error: BaseException | None) -> bool:
    """Whether the cause of an error is a full disk, a quota or a file size limit."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def nearest(word: str, choices: Iterable[str], count: int = 2) -> list[str]:
    """The choices that look most like a word, without regard to case, best first."""
    by_folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=count, cutoff=0.5)
    return [by_folded[name] for name in close]


def check_known(
    name: str,
    known: Iterable[str],
    what: str,
    fix: str | None = "one of {}",
    *,
    count: int = 1,
) -> None:
    """Raise UsageError, with the nearest choices, if a name is not one of those that are known.

    Args:
        name: The name.
        known: All of them.
        what: What is wrong if it is not.
        fix: How to fix it; ``{}`` stands for the names. None if nothing else is to be said.
        count: How many of the nearest are named.
    """
    choices = list(known)
    if name not in choices:
        listed = None if fix is None else fix.replace("{}", ", ".join(choices))
        raise UsageError(what, nearest=nearest(name, choices, count), fix=listed)
