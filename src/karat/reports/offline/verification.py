"""The verification of a certificate."""

from __future__ import annotations

from rich.console import Console

from karat.reports.phrases.numbers import counted, signed
from karat.reports.writers.plain import plain
from karat.reports.writers.terminal import show_notes
from karat.tables.release.certificate import Certificate, Verification


def show(found: Verification, out: Console) -> None:
    certificate = found.certificate
    claim = (
        f"the mean {certificate.measure} of {certificate.candidate} over these "
        f"{counted(certificate.n, 'query')} is {certificate.verdict} than that of "
        f"{certificate.baseline}, whatever grades the unjudged documents of both have "
        f"({signed(certificate.unjudged_low)} to {signed(certificate.unjudged_high)})"
    )
    out.print(plain(claim))
    out.print("holds" if found.holds else "does not hold", style="bold")
    out.print(_unseen(certificate))
    show_notes(found.findings or found.notes, out)


def _unseen(certificate: Certificate) -> str:
    """What the certificate assumes about relevant documents in neither run."""
    if certificate.unseen_unlimited:
        unseen = "any number of relevant documents that neither run shows"
    elif certificate.unseen is None:
        unseen = "an unknown number of relevant documents that neither run shows"
    else:
        documents = counted(certificate.unseen, "relevant document")
        unseen = f"up to {documents} per query that neither run shows"
    return f"allowed for: {unseen}. Chance is not covered: other queries may differ."
