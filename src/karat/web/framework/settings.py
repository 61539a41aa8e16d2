"""Settings of a server; worker processes read them from their environment."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "KARAT_SERVE"
LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine; any other in a request may be a DNS rebinding attack."""
MAX_UPLOAD = 4 * 2**30
"""Default limit of an upload, bytes."""
PATIENCE_S = 60.0
"""Default of seconds that a client may pause."""


def plain_host(name: str) -> str:
    """A host name as browsers send it: lower case, IP addresses in canonical form."""
    name = name.casefold()
    inside = name.removeprefix("[").removesuffix("]")
    try:
        ip = ipaddress.ip_address(inside)
    except ValueError:
        return name.removesuffix(".")  # the root dot does not change the name
    return str(ip) if ip.version == 4 else f"[{ip}]"


@dataclass(frozen=True)
class Settings:
    workspace: Path
    # Whether users sign in with accounts; else with a one-time link, on this machine only
    accounts: bool = True
    owner: str = "owner"
    base: str = ""  # path under which a proxy serves the app, as ``/karat``; empty for the root
    hosts: tuple[str, ...] = ()  # host names accepted in requests; empty for any
    secure: bool = False
    max_upload: int = MAX_UPLOAD  # limit of an upload, bytes
    # Seconds that a client may take to send the head of a request, and may pause while sending the
    # rest of it or reading the response
    patience_s: float = PATIENCE_S
    # Addresses of trusted reverse proxies (X-Forwarded-*); ``*`` for any
    proxies: tuple[str, ...] = ()
    connections: int = 256

    def to_environment(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self) | {"workspace": str(self.workspace)})}

    @classmethod
    def from_environment(cls) -> Settings:
        values = json.loads(os.environ[VARIABLE])
        values |= {name: tuple(values[name]) for name in ("hosts", "proxies")}
        return cls(**values | {"workspace": Path(values["workspace"])})
