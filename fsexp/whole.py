"""Files and folders of output that appear whole or not at all: a reader sees the old content or the new."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fsexp.errors import MachineError


def write(path: Path, content: bytes | str) -> None:
    """Replace a file. Raises MachineError where the disk does not take it; the old content is then still there."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Replace a file by a value as JSON, indented."""
    write(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of `path` when the block ends well."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        fresh = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            # mkstemp makes files for the owner only; results are for whoever reads the folder.
            fresh.chmod(0o666 & ~_umask())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise MachineError(f"{path}: cannot write: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def folder(output: Path) -> Iterator[Path]:
    """Yield an empty folder beside `output`; it takes the place of `output` when the block ends well.

    After an exception the temporary folder is gone and `output` is as it was.
    """
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".new", dir=output.parent))
    try:
        fresh.chmod(0o755)  # mkdtemp makes it private, but results are read by other programs
        yield fresh
        _swap(fresh, output)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _swap(fresh: Path, output: Path) -> None:
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        fresh.replace(output)  # rename(2) replaces an empty folder in one step
        return
    old = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".old", dir=output.parent))
    output.replace(old)
    try:
        fresh.replace(output)
    except BaseException:
        old.replace(output)
        raise
    shutil.rmtree(old, ignore_errors=True)
