"""Checksum: detects that a file written by karat was damaged or edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of an object, in hexadecimal, independent of the order of its keys.

    It detects damage but proves no authorship: anyone who edits the object can recompute it.
    """
    written = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
