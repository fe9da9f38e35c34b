"""The manifest of a tree, which the core compares with what a filesystem holds when a workload has ended.

Text: a line `fsexp-manifest`, 1 and the number of entries, then a line for each entry with its path below the top, type
(f file, d directory, l symbolic link), mode in octal, size in bytes (0 for a directory) and its value: a file's CRC-32
in hexadecimal, a link's target, "-" for a directory. TAB stands between fields. In paths and targets a byte that is not
printable ASCII, and the backslash, is `\\x` and two hexadecimal digits. The entries of a directory follow it, in the
order of the bytes of their names.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fsexp import ops, whole
from fsexp.errors import UserError
from fsexp.ops import Argument
from fsexp.tree import Directory, File, Link, Tree, Untold

FORMAT = 1
_ESCAPED = re.compile(r"[^ -\[\]-~]")


def lines(tree: Tree) -> Iterator[str]:
    """The lines, each with its newline. Raises UserError for a file whose content the stream does not tell."""
    yield f"fsexp-manifest\t{FORMAT}\t{_count(tree.top)}\n"
    yield from _below(tree.top)


def write(path: Path, operations: Iterable[tuple[str, list[Argument]]]) -> str:
    """Write the manifest of what these operations leave, whole or not at all; its sha256 is returned."""
    summed = hashlib.sha256()
    with whole.writing(path) as out:
        for line in lines(Tree().apply_all(operations)):
            data = line.encode("ascii")
            summed.update(data)
            out.write(data)
    return summed.hexdigest()


def escape(text: str) -> str:
    """A path or a target as it stands in a line."""
    if not _ESCAPED.search(text):
        return text
    return "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x5C else f"\\x{byte:02x}" for byte in os.fsencode(text)
    )


def _count(top: Directory) -> int:
    total, left = 0, [top]
    while left:
        folder = left.pop()
        total += len(folder.entries)
        left += [node for node in folder.entries.values() if isinstance(node, Directory)]
    return total


def _below(top: Directory) -> Iterator[str]:
    # The stack holds what is still to come, the next one last: a tree may be deeper than Python's recursion.
    left = [(top, "")]
    while left:
        node, path = left.pop()
        if path:
            yield _line(node, path)
        if isinstance(node, Directory):
            prefix = f"{path}/" if path else ""
            names = sorted(node.entries, key=os.fsencode, reverse=True)
            left += [(node.entries[name], prefix + escape(name)) for name in names]


def _line(node: File | Link | Directory, path: str) -> str:
    if isinstance(node, Directory):
        return f"{path}\td\t{node.mode:04o}\t0\t-\n"
    if isinstance(node, Link):
        return f"{path}\tl\t0777\t{len(os.fsencode(node.target))}\t{escape(node.target)}\n"
    if node.content.size < node.known_from:
        raise Untold(f"the size of '{path}' is not known after fallocate, which may be refused")
    return f"{path}\tf\t{node.mode:04o}\t{node.content.size}\t{node.content.crc32():08x}\n"


def asked_for(stream: Path) -> Iterator[tuple[str, bytes]]:
    """The manifest of each `verify` of the stream in that file: its path as the stream has it, and its bytes.

    Raises UserError where the stream does not tell what must be there, or gives two manifests one path.
    """
    # Counted before, since the tree of a large stream takes its time, and what follows the last may be untold.
    wanted = sum(name == "verify" for name, _ in ops.read(stream))
    seen: set[str] = set()
    tree, operations = Tree(), ops.read(stream)
    for _ in range(wanted):
        found: list[str] = []
        tree.apply_all(_until_verify(operations, found))
        if found[0] in seen:
            raise UserError(f"two verify operations have the manifest '{found[0]}', and each needs its own")
        seen.add(found[0])
        yield found[0], "".join(lines(tree)).encode("ascii")


def _until_verify(
    operations: Iterator[tuple[str, list[Argument]]], found: list[str]
) -> Iterator[tuple[str, list[Argument]]]:
    """The operations before the next `verify`, whose path goes into `found`."""
    for name, arguments in operations:
        if name == "verify":
            found.extend(map(str, arguments))
            return
        yield name, arguments
