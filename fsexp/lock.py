"""Lock files: which packages, by version and digest, stand for a source that the configuration names.

The file is JSON, `{"format": 1, "entries": {KEY: {"packages": [RECORD, ...]}}}`, written with one
record a line so that a change reads well in a diff. A record is
`{"package", "version", "sha256", "bytes", "filename"}`, `filename` being the path in the archive's
pool, without a host: the machine's own mirror completes it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fsexp import whole
from fsexp.errors import UserError

FORMAT = 1


def read(path: Path) -> dict[str, dict]:
    """The entries by key; empty when there is no file yet. UserError when it can't be understood."""
    mend = "mend it, take it from where the study is kept, or remove it to pin what is current"
    try:
        content = json.loads(Path(path).read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"the lock file {path} is damaged at line {error.lineno}; {mend}") from None
    except (UnicodeDecodeError, RecursionError):
        raise UserError(f"the lock file {path} is damaged: it is not JSON; {mend}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"{path} is no lock file of format {FORMAT}; {mend}")
    entries = content.get("entries")
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise UserError(f"the lock file {path} has no entries; {mend}")
    return entries


def put(path: Path, key: str, value: dict) -> None:
    """Set one entry, keeping what other processes have written meanwhile."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The lock file itself is replaced by rename, so a lock on it would guard the wrong inode.
    with held(path.parent / f".{path.name}.guard"):
        entries = read(path)
        entries[key] = value
        whole.write(path, render(entries))


def line(path: Path, key: str) -> int | None:
    """The number of the line on which the entry begins, for messages."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    start = json.dumps(key, ensure_ascii=False) + ":"
    return next((n for n, text in enumerate(lines, 1) if text.strip().startswith(start)), None)


def render(entries: dict[str, dict]) -> str:
    """The file's text."""

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    blocks = []
    for key in sorted(entries):
        members = []
        for name, value in sorted(entries[key].items()):
            if isinstance(value, list):
                rows = ",\n".join(f"        {compact(item)}" for item in value)
                members.append(f"      {compact(name)}: [\n{rows}\n      ]")
            else:
                members.append(f"      {compact(name)}: {compact(value)}")
        blocks.append(f"    {compact(key)}: {{\n" + ",\n".join(members) + "\n    }")
    body = "{\n" + ",\n".join(blocks) + "\n  }" if blocks else "{}"
    return f'{{\n  "format": {FORMAT},\n  "entries": {body}\n}}\n'


@contextmanager
def held(guard: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes on the file `guard`, which is made when missing."""
    descriptor = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
