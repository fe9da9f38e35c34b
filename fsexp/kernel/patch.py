"""Patches: unified diffs, as kernel.org, git and mailing lists have them, applied to a tree by `patch -p1`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fsexp import compression
from fsexp.errors import MachineError, UserError
from fsexp.kernel import tree

_NAMES = re.compile(rb"(?:---|\+\+\+|Index:|rename from|rename to|copy from|copy to) (.+)|diff --git (.+)", re.DOTALL)
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_LINK_MODE = b" 120000"
_TARGET = re.compile(r"^(?:patching|checking) (?:file|symbolic link) (.*?)(?: \(.*\))?$")
_FAILED = re.compile(r"^Hunk #(\d+) FAILED at (\d+)")
_REFUSAL = re.compile(
    r"^(?:can't find file|File .* (?:not|already)|\*\*\*\* |The next patch|.*(?:binary diffs|dangerous))"
)


def apply(path: Path, folder: Path, name: str | None = None) -> None:
    """Apply the patch in the file, plain or compressed, to the tree in the folder, without any fuzz.

    Raises UserError, with `name` (default: the file's), where the patch is empty, leads out of the tree or does not
    fit; the folder is then of no use any more.
    """
    name = name or path.name
    data = compression.read(path)
    check(data, name)
    # -u: no ed scripts, which are programs. -f: never ask, never turn a patch round. Fuzz puts hunks where the lines
    # around differ from what the patch's author saw.
    command = [
        "patch",
        "-p1",
        "-u",
        "-f",
        "-g0",
        "-F0",
        "--no-backup-if-mismatch",
        "--reject-file=-",
        "-d",
        str(folder),
    ]
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError:
        raise UserError("patch is not installed: apt-get install patch") from None
    said = done.stdout.decode(errors="replace")
    if "No space left on device" in said:
        raise MachineError(f"{folder}: cannot write: No space left on device")
    if done.returncode:
        raise UserError(f"The patch {name} does not apply: {_first_trouble(said)}.")
    if _LINK_MODE in data:
        tree.check_links(folder, tree.links(folder), f"The patch {name}")


def touches(path: Path, file: str) -> bool:
    """Whether the patch in a file changes the file of that path in the tree."""
    named = (text for kind, text in _headers(compression.read(path)) if kind == "name")
    return any(text.partition("/")[2] == file for text in named)


def check(data: bytes, name: str) -> None:
    """Raise UserError where the patch changes nothing or names a file outside of the tree."""
    changes = False
    for kind, text in _headers(data):
        changes = changes or kind != "name"
        if kind == "name" and _leads_out(text):
            raise UserError(f"The patch {name} is not applied: it names {text!r}, which leads out of the tree.")
    if not changes:
        raise UserError(f"The patch {name} changes nothing: there is no unified diff in it.")


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """What stands outside of the hunks' lines: ("name", a file's), ("hunk", "") and ("mode", "")."""
    old = new = 0
    for line in data.splitlines():
        if old > 0 or new > 0:
            # A removed line may look as a header: "-- a/file" of an SQL file becomes "--- a/file".
            first = line[:1]
            old -= first in (b" ", b"", b"-", b"\t")
            new -= first in (b" ", b"", b"+", b"\t")
        elif hunk := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in hunk.groups())
            yield "hunk", ""
        elif found := _NAMES.fullmatch(line):
            yield from (("name", text) for text in _names(found))
            if line.startswith(b"rename"):
                yield "mode", ""
        elif line.startswith((b"new file mode ", b"deleted file mode ", b"new mode ")):
            yield "mode", ""


def _names(found: re.Match) -> Iterator[str]:
    if found[1] is not None:
        yield _plain(found[1].split(b"\t")[0].strip())
    elif quoted := re.findall(rb'"(?:\\.|[^"\\])*"', found[2]):
        yield from map(_plain, quoted)
    else:
        yield from map(_plain, found[2].split())


def _plain(name: bytes) -> str:
    if name.startswith(b'"') and name.endswith(b'"'):
        try:
            return name[1:-1].decode("unicode_escape")
        except UnicodeDecodeError:
            pass
    return name.decode(errors="replace")


def _leads_out(name: str) -> bool:
    return (name.startswith("/") and name != "/dev/null") or ".." in name.split("/")


def _first_trouble(said: str) -> str:
    """The first thing that patch complains of, in one clause."""
    target = ""
    for line in said.splitlines():
        if found := _TARGET.match(line):
            target = found[1].strip("'")
        elif found := _FAILED.match(line):
            return f"hunk {found[1]} for {target} does not fit at line {found[2]} (no fuzz is allowed)"
        elif _REFUSAL.match(line) or line.startswith("patch: "):
            return line.removeprefix("patch: ").strip("* ").rstrip(".")
    return said.strip().splitlines()[-1] if said.strip() else "patch failed without a word"
