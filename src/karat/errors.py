"""Every error karat raises on purpose.

    KaratError                 exit 4   something failed that is nobody's typing mistake
    ├── InputError             exit 2   the data is wrong: file, line, query, and the fix
    ├── UsageError             exit 2   what was asked is wrong: the nearest choice, and the fix
    │   ├── LeaseLost          exit 2   another rater has the pair now (karat.store.sql.judgments)
    │   └── PolicyRefused      exit 1   a policy that was set refuses this: a verdict, "fail"
    └── MissingExtra           exit 2   an optional dependency is not installed

The text of an error is ready to print; the command line adds nothing but "karat: ". Whoever types a
command can add an option; whoever looks at a page can choose in its form: where these differ, the
``fix`` of an error is an ``Advice``, and pages show its other words by ``on_page``.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence
from typing import Self, SupportsIndex

_FULL = {errno.ENOSPC, errno.EFBIG} | ({errno.EDQUOT} if hasattr(errno, "EDQUOT") else set())

_SQLITE_FULL = 13


class KaratError(Exception):
    """Base of every error karat raises on purpose."""

    exit_code = 4
    fix: str | None = None


class Advice(str):
    """What helps, as the command line says it.

    Attributes:
        page: What helps, as a page says it.
    """

    __slots__ = ("page",)
    page: str

    def __new__(cls, typed: str, *, page: str) -> Self:
        """Advice: ``typed`` at the command line, ``page`` on a page."""
        made = super().__new__(cls, typed)
        made.page = page
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        """What copies and pickles are made of."""
        return (str(self),), {"page": self.page}

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Advice:
        """The same about another name, for both doors."""
        return Advice(super().replace(old, new, count), page=self.page.replace(old, new, count))


class InputError(KaratError):
    """The data is wrong.

    Args:
        what: What is wrong, in one sentence without a full stop.
        file: The file (or table) it stands in.
        line: Line number from 1.
        query: The query id it concerns.
        doc_id: The document it concerns; readers use it to find the line.
        fix: What to do about it.
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
    ) -> None:
        self.what, self.file, self.line, self.fix = what, file, line, fix
        self.query, self.doc_id = query, doc_id
        where = [part for part in (file, f"line {line}" if line is not None else None) if part]
        text = f"{', '.join(where)}: {what}" if where else what
        if query is not None:
            text += f" (query {query})"
        super().__init__(text + _fix_line(fix))

    def at_line(self, line: int | None) -> InputError:
        """The same error with its line filled in."""
        return InputError(
            self.what,
            file=self.file,
            line=line,
            query=self.query,
            doc_id=self.doc_id,
            fix=self.fix,
        )


class UsageError(KaratError):
    """What was asked is wrong: a measure, an option, a combination."""

    exit_code = 2

    def __init__(self, what: str, *, nearest: Sequence[str] = (), fix: str | None = None) -> None:
        self.what, self.nearest, self.fix = what, tuple(nearest), fix
        meant = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(what + meant + _fix_line(fix))


class PolicyRefused(UsageError):
    """What was asked is right, and a policy that was set refuses it: the verdict is "fail"."""

    exit_code = 1


class MissingExtra(KaratError):
    """An optional dependency is not installed.

    Args:
        package: What is not installed; all of it, where several are needed.
        extra: What installs it: one extra, or several with commas.
        purpose: What needs it.
    """

    exit_code = 2

    def __init__(self, package: str | Sequence[str], extra: str, purpose: str) -> None:
        self.packages = [package] if isinstance(package, str) else list(package)
        self.extra, self.purpose = extra, purpose
        what = "package" if len(self.packages) == 1 else "packages"
        super().__init__(
            f"{purpose} needs the {what} {', '.join(self.packages)}"
            + _fix_line(f"pip install 'karat[{extra}]'")
        )


def on_page(said: str | KaratError) -> str:
    """What a page says: of an advice its own words, of an error its text with those."""
    if isinstance(said, KaratError):
        if said.fix is None:
            return str(said)
        return str(said).removesuffix(_fix_line(said.fix)) + _fix_line(on_page(said.fix))
    return said.page if isinstance(said, Advice) else said


def no_room(error: BaseException | None) -> bool:
    """Whether an error is of a disk, a quota or a limit that is full, or came of one."""
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


def _fix_line(fix: str | None) -> str:
    return f"\n  fix: {fix}" if fix else ""
