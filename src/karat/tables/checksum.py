"""Checksum: shows that what karat wrote was damaged or edited since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of an object, in hexadecimal, whatever the order of its keys.

    It shows damage, and not who wrote it: anyone who edits it can work it out again.
    """
    written = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
