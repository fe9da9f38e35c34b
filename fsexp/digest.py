"""Digests: sha256, hexadecimal, of what a study is made from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def of_bytes(data: bytes) -> str:
    """The digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def of_file(path: Path) -> str:
    """The digest of a file's content. Raises OSError where it can't be read."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_value(value: Any) -> str:
    """The digest of a value that JSON can hold; equal values have equal ones whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return of_bytes(text.encode())
