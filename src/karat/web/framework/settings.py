"""What a server was started with; its worker processes read it from their environment."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "KARAT_SERVE"
MAX_UPLOAD = 4 * 2**30
"""Bytes of one upload, unless the command says otherwise."""
PATIENCE_S = 60.0
"""Seconds that a client may pause, unless the command says otherwise."""


def plain_host(name: str) -> str:
    """A name of a machine as browsers send it: small letters, an address in its one short form."""
    name = name.casefold()
    inside = name.removeprefix("[").removesuffix("]")
    try:
        found = ipaddress.ip_address(inside)
    except ValueError:
        return name.removesuffix(".")  # with the dot it is the same name
    return str(found) if found.version == 4 else f"[{found}]"


@dataclass(frozen=True)
class Settings:
    """How to serve.

    Attributes:
        workspace: Folder of the workspace.
        accounts: Whether people sign in with accounts; else whoever has the one-time link, on
            this machine alone.
        owner: Who that is, without accounts.
        base: Path under which a proxy serves the app, as ``/karat``; empty for the root.
        hosts: Names it answers to; a request for another is refused. Empty: any.
        secure: Whether cookies go over HTTPS only.
        max_upload: Bytes of one upload.
        patience_s: Seconds that a client may take to send the head of a request, and may pause in
            sending the rest of it or in reading the answer.
    """

    workspace: Path
    accounts: bool = True
    owner: str = "owner"
    base: str = ""
    hosts: tuple[str, ...] = ()
    secure: bool = False
    max_upload: int = MAX_UPLOAD
    patience_s: float = PATIENCE_S

    def to_environment(self) -> dict[str, str]:
        """The variable that ``from_environment`` reads."""
        return {VARIABLE: json.dumps(asdict(self) | {"workspace": str(self.workspace)})}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """What ``to_environment`` wrote."""
        held = json.loads((os.environ if environment is None else environment)[VARIABLE])
        held |= {"workspace": Path(held["workspace"]), "hosts": tuple(held["hosts"])}
        return cls(**held)
