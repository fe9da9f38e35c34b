"""The tree that a stream of operations leaves, computed without running it.

Only what the operations say is taken for known: the umask is 0, the caller is root, the top is an empty directory. An
operation that would fail, and one whose effect the stream does not tell, raises UserError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from fsexp.content import Content
from fsexp.errors import UserError
from fsexp.ops import Argument

# Of symbolic links on the way to a file: Linux gives up there too.
_LINKS_MAX = 40

_READS = (os.O_RDONLY, os.O_RDWR)
_WRITES = (os.O_WRONLY, os.O_RDWR)

_SET_USER, _SET_GROUP, _STICKY = 0o4000, 0o2000, 0o1000


class File:
    """A file, by all its names."""

    __slots__ = ("content", "known_from", "mode")

    def __init__(self, mode: int, content: Content | None = None) -> None:
        self.mode = mode
        self.content = content or Content()
        # fallocate may be refused, which is no failure: the size is only known again when it is at least this.
        self.known_from = 0


class Link:
    """A symbolic link."""

    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        self.target = target


class Directory:
    """A directory; the top one is its own parent, one that was removed has none."""

    __slots__ = ("entries", "mode", "parent")

    def __init__(self, mode: int, parent: Directory | None) -> None:
        self.mode = mode
        self.parent: Directory | None = parent or self
        self.entries: dict[str, Node] = {}


Node = File | Link | Directory


class Impossible(UserError):
    """The stream does what would fail."""


class Untold(Impossible):
    """The stream does what can't be modelled."""


class _Open:
    __slots__ = ("flags", "node", "position")

    def __init__(self, node: Node, flags: int) -> None:
        self.node = node
        self.flags = flags
        self.position = 0


class Tree:
    """What is below the top directory, and which files are open."""

    def __init__(self) -> None:
        self.top = Directory(0o755, None)
        self._here = self.top
        self._slots: dict[int, _Open] = {}

    def apply_all(self, operations: Iterable[tuple[str, list[Argument]]]) -> Tree:
        """Every operation of a stream, as `ops.read` gives them; the tree itself is returned."""
        for number, (name, arguments) in enumerate(operations):
            try:
                self.apply(name, arguments)
            except Impossible as error:
                raise type(error)(f"{error} (operation {number}, {name})") from None
        return self

    def apply(self, name: str, arguments: list[Argument]) -> None:
        """One operation."""
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, *arguments)
        elif name not in _WITHOUT_EFFECT:
            raise Untold(f"what {name} leaves can't be told from the stream")

    # Paths

    def _walk(self, path: str, links: int = 0, start: Directory | None = None) -> tuple[Directory, str]:
        """The directory that the last name of the path lies in, and that name; "" for the directory itself."""
        if path.startswith("/"):
            raise Untold(f"where '{path}' is can't be told from the stream: it is not below the top directory")
        *before, last = path.split("/") if not path.endswith("/") else [*path.rstrip("/").split("/"), ""]
        folder = start or self._here
        for name in before:
            folder = self._enter(folder, name, path, links)
        if last in (".", ".."):
            return self._enter(folder, last, path, links), ""
        return folder, last

    def _enter(self, folder: Directory, name: str, path: str, links: int) -> Directory:
        if name in ("", "."):
            return folder
        if name == "..":
            if folder is self.top:
                raise Untold(f"'{path}' leads out of the top directory")
            if _is_gone(folder):
                raise Untold(f"'{path}' leads out of a directory that was removed")
            return folder.parent
        node = folder.entries.get(name)
        if isinstance(node, Link):
            node = self._follow(folder, node, path, links)
        if not isinstance(node, Directory):
            raise Impossible(f"'{path}': there is {'no' if node is None else 'a file, not a'} directory '{name}'")
        return node

    def _follow(self, folder: Directory, link: Link, path: str, links: int) -> Node | None:
        if links == _LINKS_MAX:
            raise Impossible(f"'{path}' leads through too many symbolic links")
        inside, name = self._walk(link.target, links + 1, folder)
        node = inside.entries.get(name) if name else inside
        return self._follow(inside, node, path, links + 1) if isinstance(node, Link) else node

    def _find(self, path: str, follow: bool) -> Node:
        folder, name = self._walk(path)
        node = folder.entries.get(name) if name else folder
        if isinstance(node, Link) and follow:
            node = self._follow(folder, node, path, 0)
        if node is None:
            raise Impossible(f"there is nothing at '{path}'")
        return node

    def _vacant(self, path: str) -> tuple[Directory, str]:
        folder, name = self._walk(path)
        if not name or name in folder.entries:
            raise Impossible(f"there is something at '{path}' already")
        if _is_gone(folder):
            raise Impossible(f"'{path}' is in a directory that was removed")
        return folder, name

    def _there(self, path: str) -> tuple[Directory, str, Node]:
        """The name itself, no link followed."""
        folder, name = self._walk(path)
        if not name or name not in folder.entries:
            raise Impossible(f"there is nothing at '{path}' that could be taken away")
        return folder, name, folder.entries[name]

    def _take_away(self, folder: Directory, name: str) -> None:
        node = folder.entries.pop(name)
        if isinstance(node, Directory):
            node.parent = None

    # Names

    def _mkdir(self, path: str, mode: int) -> None:
        folder, name = self._vacant(path.rstrip("/") or path)
        # mkdir(2) on Linux: the bits of permissions and the sticky bit; set-group-ID is the parent's.
        folder.entries[name] = Directory(mode & (0o777 | _STICKY) | folder.mode & _SET_GROUP, folder)

    def _rmdir(self, path: str) -> None:
        folder, name, node = self._there(path.rstrip("/") or path)
        if not isinstance(node, Directory) or node.entries:
            raise Impossible(f"'{path}' is no empty directory")
        self._take_away(folder, name)

    def _unlink(self, path: str) -> None:
        folder, name, node = self._there(path)
        if isinstance(node, Directory):
            raise Impossible(f"'{path}' is a directory")
        del folder.entries[name]

    def _rename(self, source: str, target: str) -> None:
        folder, name, node = self._there(source.rstrip("/"))
        into, new_name = self._walk(target.rstrip("/"))
        if not new_name:
            raise Impossible(f"nothing can take the place of '{target}'")
        if _is_gone(into):
            raise Impossible(f"'{target}' is in a directory that was removed")
        there = into.entries.get(new_name)
        if there is node:
            return
        if isinstance(node, Directory):
            if there is not None and (not isinstance(there, Directory) or there.entries):
                raise Impossible(f"'{target}' is not an empty directory")
            if self._is_within(into, node):
                raise Impossible(f"'{target}' is within '{source}'")
        elif isinstance(there, Directory):
            raise Impossible(f"'{target}' is a directory")
        if there is not None:
            self._take_away(into, new_name)
        del folder.entries[name]
        into.entries[new_name] = node
        if isinstance(node, Directory):
            node.parent = into

    @staticmethod
    def _is_within(folder: Directory, above: Directory) -> bool:
        at: Directory | None = folder
        while at is not None and at is not above and at.parent is not at:
            at = at.parent
        return at is above

    def _link(self, source: str, target: str) -> None:
        node = self._find(source, follow=False)
        if isinstance(node, Directory):
            raise Impossible(f"'{source}' is a directory")
        folder, name = self._vacant(target)
        folder.entries[name] = node

    def _symlink(self, target: str, path: str) -> None:
        folder, name = self._vacant(path)
        folder.entries[name] = Link(target)

    def _chdir(self, path: str) -> None:
        node = self._find(path, follow=True)
        if not isinstance(node, Directory):
            raise Impossible(f"'{path}' is no directory")
        self._here = node

    def _remount(self) -> None:
        self._here = self.top

    # Files

    def _create(self, path: str, mode: int) -> None:
        self._opened(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)

    def _opened(self, path: str, flags: int, mode: int) -> Node:
        folder, name = self._walk(path)
        node = folder.entries.get(name) if name else folder
        if isinstance(node, Link) and not flags & (os.O_EXCL | os.O_NOFOLLOW):
            node = self._follow(folder, node, path, 0)
            if node is None and flags & os.O_CREAT:
                raise Untold(f"'{path}' would be created through a symbolic link")
        if node is None:
            if not flags & os.O_CREAT:
                raise Impossible(f"there is nothing at '{path}'")
            self._vacant(path)
            node = folder.entries[name] = File(mode)
            return node
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise Impossible(f"there is something at '{path}' already")
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if isinstance(node, Link) or (isinstance(node, Directory) and (writes or flags & os.O_CREAT)):
            raise Impossible(f"'{path}' can't be opened like that")
        if flags & os.O_DIRECTORY and not isinstance(node, Directory):
            raise Impossible(f"'{path}' is no directory")
        if flags & os.O_TRUNC and isinstance(node, File):
            self._resize(node, 0)
        return node

    def _open(self, slot: int, path: str, flags: int, mode: int) -> None:
        self._slots[slot] = _Open(self._opened(path, flags, mode), flags)

    def _close(self, slot: int) -> None:
        del self._slots[slot]

    def _file(self, slot: int, *accesses: int) -> File:
        """The open file. Raises Impossible where it is none, or was not opened for one of these accesses."""
        opened = self._slots[slot]
        if not isinstance(opened.node, File):
            raise Impossible("a directory is written or read as if it were a file")
        if opened.flags & os.O_ACCMODE not in accesses:
            raise Impossible("a file is written that was opened for reading, or the other way round")
        return opened.node

    @staticmethod
    def _resize(node: File, size: int) -> None:
        node.content.resize(size)
        node.known_from = 0

    def _write(self, slot: int, kind: int, seed: int, length: int) -> None:
        node, opened = self._file(slot, *_WRITES), self._slots[slot]
        if opened.flags & os.O_APPEND and length:
            if node.content.size < node.known_from:
                raise Untold("a file's end is not known after fallocate, which may be refused")
            opened.position = node.content.size
        node.content.write(opened.position, kind, seed, length)
        opened.position += length

    def _read(self, slot: int, length: int) -> None:
        node, opened = self._file(slot, *_READS), self._slots[slot]
        if node.content.size < node.known_from:
            raise Untold("a file's end is not known after fallocate, which may be refused")
        opened.position = max(opened.position, min(opened.position + length, node.content.size))

    def _fallocate(self, slot: int, mode: int, offset: int, length: int) -> None:
        node = self._file(slot, *_WRITES)
        if length == 0:
            raise Impossible("fallocate of nothing")
        if mode not in (0, 1):  # 1: FALLOC_FL_KEEP_SIZE
            raise Untold("what fallocate does to a file's content can't be told: it may be refused")
        if mode == 0:
            node.known_from = max(node.known_from, offset + length)

    def _ftruncate(self, slot: int, length: int) -> None:
        self._resize(self._file(slot, *_WRITES), length)

    def _truncate(self, path: str, length: int) -> None:
        node = self._find(path, follow=True)
        if not isinstance(node, File):
            raise Impossible(f"'{path}' is no file")
        self._resize(node, length)

    # What belongs to files besides their content

    def _fchmod(self, slot: int, mode: int) -> None:
        self._set_mode(self._slots[slot].node, mode)

    def _chmod(self, path: str, mode: int) -> None:
        self._set_mode(self._find(path, follow=True), mode)

    @staticmethod
    def _set_mode(node: Node, mode: int) -> None:
        assert not isinstance(node, Link)
        node.mode = mode

    def _fchown(self, slot: int, _user: int, _group: int) -> None:
        node = self._slots[slot].node
        if isinstance(node, File):  # it loses these, whoever the caller is
            executable_group = node.mode & 0o010
            node.mode &= ~(_SET_USER | (_SET_GROUP if executable_group else 0))

    def _exists(self, path: str, *_: Argument) -> None:
        self._find(path, follow=False)

    # Whole trees

    def _walk_tree(self, _program: str, path: str, _type: str) -> None:
        self._find(path, follow=False)

    def _copy(self, _program: str, source: str, target: str) -> None:
        node = self._find(source, follow=False)
        folder, name = self._vacant(target)
        if isinstance(node, Directory) and self._is_within(folder, node):
            raise Untold(f"'{target}' is within '{source}'")
        folder.entries[name] = _copy_of(node, folder)

    def _remove(self, _program: str, path: str) -> None:
        folder, name, node = self._there(path)
        _forget(node)
        del folder.entries[name]


def _is_gone(folder: Directory) -> bool:
    return folder.parent is None


def _copy_of(node: Node, parent: Directory) -> Node:
    """A copy of a tree, in which names of one file are names of one file again."""
    files: dict[Node, Node] = {}

    def copied(one: Node) -> Node:
        if one not in files:
            if isinstance(one, File):
                files[one] = File(one.mode, one.content.copy())
                files[one].known_from = one.known_from
            else:
                files[one] = Link(one.target)
        return files[one]

    if not isinstance(node, Directory):
        return copied(node)
    top = Directory(node.mode, parent)
    left = [(node, top)]
    while left:
        source, target = left.pop()
        for name, entry in source.entries.items():
            if isinstance(entry, Directory):
                made = target.entries[name] = Directory(entry.mode, target)
                left.append((entry, made))
            else:
                target.entries[name] = copied(entry)
    return top


def _forget(node: Node) -> None:
    """Make every directory of a removed tree one that nothing can be created in."""
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, Directory):
            left += one.entries.values()
            one.entries = {}
            one.parent = None


_HANDLERS = {
    "mkdir": Tree._mkdir,
    "create": Tree._create,
    "unlink": Tree._unlink,
    "rmdir": Tree._rmdir,
    "chdir": Tree._chdir,
    "open": Tree._open,
    "close": Tree._close,
    "write": Tree._write,
    "read": Tree._read,
    "fallocate": Tree._fallocate,
    "ftruncate": Tree._ftruncate,
    "fchmod": Tree._fchmod,
    "fchown": Tree._fchown,
    "rename": Tree._rename,
    "link": Tree._link,
    "symlink": Tree._symlink,
    "truncate": Tree._truncate,
    "stat": Tree._exists,
    "chmod": Tree._chmod,
    "utimes": Tree._exists,
    "remount": Tree._remount,
    "walk": Tree._walk_tree,
    "copy": Tree._copy,
    "remove": Tree._remove,
}
_WITHOUT_EFFECT = {
    *("phase", "phase-end", "end", "sync", "fsync", "fdatasync", "sync-file-range", "futimens"),
    *("drop-caches", "verify"),
}
