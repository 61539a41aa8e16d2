r"""Line ends: LF or CR LF, nothing else (decision 0005).

A carriage return elsewhere may once have ended a line, so that a line now contains two rows. Other
characters that some programs treat as line ends (VT, FF, NEL, U+2028, U+2029) are text.
"""

from __future__ import annotations

from karat.errors import InputError

WITHIN = "a carriage return (CR) within the line, where only LF and CR LF end lines"


def only_crlf(data: bytes) -> bool:
    """Whether every carriage return is followed by a newline."""
    return b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")


def return_within(raw: bytes) -> bool:
    r"""Whether a line has a carriage return that is not at its end.

    Several at the end are accepted: on Windows, ``\r\n`` written in text mode becomes ``\r\r\n``.
    """
    return b"\r" in raw and b"\r" in raw.rstrip(b"\r\n")


def refuse_return(raw: bytes, name: str, line: int) -> None:
    """Raise InputError for a line with a carriage return that is not at its end."""
    if return_within(raw):
        raise within(name, line)


def within(name: str, line: int) -> InputError:
    return InputError(
        WITHIN,
        file=name,
        line=line,
        fix="start a new line there, or delete it",
        command=f"tr '\\r' '\\n' < {name}",
    )
