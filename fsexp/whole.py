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

from fsexp.errors import MachineError, UserError


class NotOurs(UserError):
    """A folder that would be replaced holds what was not made here."""


# In each folder that `folder` made: the names of what is ours there.
MARKER = ".fsexp.json"


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

    After an exception the temporary folder is gone and `output` is as it was. Raises NotOurs where `output` holds
    anything that was not made here: nothing of another's is ever removed.
    """
    output = Path(output).absolute()  # "" and "." have a name then
    check_ours(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{output.name[:100]}.", suffix=".new", dir=output.parent))
    try:
        fresh.chmod(0o755)  # mkdtemp makes it private, but results are read by other programs
        yield fresh
        names = sorted(path.name for path in fresh.iterdir())
        write_json(fresh / MARKER, {"made by": "fsexp, which replaces this folder", "names": names})
        check_ours(output)
        _swap(fresh, output)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def check_ours(output: Path) -> None:
    """Raises NotOurs where `folder` would not replace `output`."""
    output = Path(output)
    if not output.exists():
        return
    if not output.is_dir():
        raise NotOurs(f"{output} is a file, and a folder is to be made there: remove it, or name another place")
    try:
        ours = {MARKER, *json.loads((output / MARKER).read_text(encoding="utf-8"))["names"]}
    except (OSError, ValueError, LookupError, TypeError):
        ours = set()
    others = sorted(path.name for path in output.iterdir() if path.name not in ours)
    if others:
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise NotOurs(
            f"{output} would be replaced as a whole, and holds what fsexp did not put there ({named}): "
            "name a folder of its own, or remove those by hand"
        )


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
