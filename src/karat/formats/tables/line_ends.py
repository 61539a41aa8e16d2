r"""What ends a line: LF or CR LF, and nothing else (decision 0005).

A carriage return anywhere else may have been the end of a line, and then two rows stand on one. The
other characters that some programs take for line ends (VT, FF, NEL, U+2028, U+2029) are text.
"""

from __future__ import annotations

from karat.errors import Advice, InputError

WITHIN = "a carriage return (CR) within the line, where only LF and CR LF end lines"


def only_crlf(data: bytes) -> bool:
    """Whether every carriage return stands before a newline."""
    return b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")


def return_within(raw: bytes) -> bool:
    r"""Whether a line has a carriage return that is not at its end.

    Several at the end are forgiven: programs on Windows that write ``\r\n`` in text mode make
    ``\r\r\n`` of it.
    """
    return b"\r" in raw and b"\r" in raw.rstrip(b"\r\n")


def refuse_return(raw: bytes, name: str, line: int) -> None:
    """Refuse a line with a carriage return that is not at its end.

    Raises:
        InputError: it has one.
    """
    if return_within(raw):
        raise InputError(WITHIN, file=name, line=line, fix=return_advice(name))


def return_advice(name: str) -> Advice:
    """What helps where a carriage return stands within a line."""
    return Advice(
        f"if it should end a line: tr '\\r' '\\n' < {name}; if not, delete it",
        page="start a new line there, or delete it",
    )
