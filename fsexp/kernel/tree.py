"""Trees of source files: which files of a folder are source, their digest, and writing them where no path leads out.

A tree is known by the names, contents and kinds of its files. Empty folders, owners and times are no part of it: git
keeps none of them, and kernels are built without.
"""

# ruff: noqa: PTH114, PTH115, PTH118, PTH123, PTH211 -- trees have 80,000 files, and a Path for each takes longer than its file

from __future__ import annotations

import fnmatch
import os
import re
import stat
import tarfile
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from fsexp import digest
from fsexp.errors import MachineError, UserError

# One time for every file: make takes a file for older only than a newer one, so files that are shipped beside what
# they were generated from (lex.zconf.c_shipped) are not made again, whatever the order in which they were written.
WRITTEN_S = 315_532_800  # 1980-01-01, the first that archives of every kind can hold

# The second came with the language itself; older kernels lack the first.
KCONFIG = ("Kconfig", "init/Kconfig")

_MODES = {"file": 0o644, "program": 0o755}


@dataclass(frozen=True)
class Entry:
    """One file: its path with slashes, relative to the tree; what it is; its content, or a link's target.

    `same` is an archive's hard link: the content is the path of an earlier file, of which this one is made a copy.
    """

    path: str
    kind: Literal["file", "program", "link", "same"]
    content: bytes


def _pattern(*patterns: str) -> re.Pattern:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


# Histories, and what configuring a tree in place leaves in it. It goes whatever the source: people commit it, and with
# it a build in another folder is refused ("source tree is not clean") or takes another configuration's headers.
_FOREIGN = re.compile(
    r"((.*/)?(\.git|\.hg|\.svn|CVS)|\.config|\.config\.old|include/config|(arch/[^/]+/)?include/generated)(/.*)?",
    re.DOTALL,
)

# What builds leave (`make distclean` and Documentation/dontdiff of 2.6.39 to 6.12) and editors. Only names that no file
# of a released kernel has: a product that stays costs nothing, as kbuild makes it again; a source that goes is a build
# that fails.
_PRODUCT_NAME = _pattern(
    "*.o", "*.o.*", "*.ko", "*.a", "*.mod", "*.mod.c", "*.dwo", "*.gcno", "*.gcda", "*.su", "*.symtypes", ".*.cmd",
    ".*.d", ".tmp_*", ".version", ".missing-syscalls.d", ".cache.mk", ".vmlinux*", ".thinlto-cache",
    "modules.order", "Module.symvers", "modules.builtin", "modules.builtin.*", "*.orig", "*.rej", "*~", ".*.sw?",
    ".pc", ".snakemake", "__pycache__",
)  # fmt: skip
_PRODUCT_PATH = _pattern(
    "vmlinux", "vmlinux.o", "vmlinux.*", "System.map", "include/linux/autoconf.h", "include/linux/compile.h",
    "include/linux/version.h", "include/linux/utsrelease.h", "include/linux/bounds.h", "usr/include/*.h",
    "usr/initramfs_data.cpio*", "arch/*/boot/bzImage", "arch/*/boot/vmlinux.bin", "arch/*/boot/compressed/vmlinux",
    "arch/*/boot/compressed/vmlinux.bin*",
)  # fmt: skip


def foreign(path: str) -> bool:
    """Whether the path is never part of the source, wherever it came from."""
    return _FOREIGN.fullmatch(path) is not None


def product(path: str, beside: Container[str] = ()) -> bool:
    """Whether a file or folder was made by a build or an editor; `beside` has all names in the same folder.

    Kbuild keeps the command that made a file in `.NAME.cmd` beside it, and copies NAME from NAME_shipped.
    """
    name = path.rpartition("/")[2]
    by_name = _PRODUCT_NAME.match(name) or _PRODUCT_PATH.match(path)
    return bool(by_name) or f".{name}.cmd" in beside or f"{name}_shipped" in beside


def listing(folder: Path, leave_out: Iterable[Path] = ()) -> list[str]:
    """The paths of the source files below a folder that has no history to ask, sorted."""
    absent = _below(folder, leave_out)
    found: list[str] = []
    waiting = [""]
    while waiting:
        parent = waiting.pop()
        with os.scandir(folder / parent) as scanned:
            files = list(scanned)
        beside = {file.name for file in files}
        for file in files:
            path = parent + file.name
            if path in absent or foreign(path) or product(path, beside):
                continue
            if file.is_dir(follow_symlinks=False):
                waiting.append(path + "/")
            else:
                found.append(path)
    return sorted(found)


def checked_out(folder: Path, tracked: Iterable[str], others: Iterable[str], leave_out: Iterable[Path]) -> list[str]:
    """The paths of the source files of a checkout, sorted, of those that are tracked and those that are only there."""
    absent = _below(folder, leave_out)

    def wanted(path: str) -> bool:
        return not foreign(path) and not any(upper in absent for upper in _with_folders(path))

    paths = {path for path in tracked if wanted(path)}
    paths |= {path for path in others if wanted(path) and not any(map(product, _with_folders(path)))}
    return sorted(paths)


def _below(folder: Path, paths: Iterable[Path]) -> set[str]:
    """Those of the paths that lie in the folder, relative to it."""
    top = folder.resolve()
    whole = [path.resolve() for path in paths]
    return {path.relative_to(top).as_posix() for path in whole if top in path.parents}


def _with_folders(path: str) -> Iterator[str]:
    yield path
    while (cut := path.rfind("/")) >= 0:
        path = path[:cut]
        yield path


def entries(folder: Path, paths: Iterable[str]) -> Iterator[Entry]:
    """The files of a folder at these paths. What is neither file nor link is left out, and so is what is gone."""
    for path in paths:
        place = os.path.join(folder, path)
        try:
            mode = os.lstat(place).st_mode
            if stat.S_ISLNK(mode):
                yield Entry(path, "link", os.fsencode(os.readlink(place)))
            elif stat.S_ISREG(mode):
                with open(place, "rb", buffering=0) as file:
                    yield Entry(path, "program" if mode & stat.S_IXUSR else "file", file.readall())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UserError(f"{place} can't be read ({error.strerror}), and the kernel's source needs it.") from error


def members(plain: IO[bytes], path: Path) -> Iterator[Entry]:
    """The files in a tar, named as they are there. UserError where it is damaged or holds what no source has."""
    try:
        with tarfile.open(fileobj=plain, mode="r|") as tar:
            for member in tar:
                name = _normal(member.name)
                if member.isdir():
                    continue
                if member.isreg():
                    yield Entry(
                        name, "program" if member.mode & stat.S_IXUSR else "file", tar.extractfile(member).read()
                    )
                elif member.issym():
                    yield Entry(name, "link", os.fsencode(member.linkname))
                elif member.islnk():
                    yield Entry(name, "same", os.fsencode(_normal(member.linkname)))
                else:
                    raise UserError(f"{path} is not unpacked: {name!r} in it is neither file, folder nor link.")
    except tarfile.TarError as error:
        raise UserError(f"{path} is no tar, or is damaged: {error}.") from error


def _normal(name: str) -> str:
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    return name


def unpacked(plain: IO[bytes], path: Path, top: str) -> Iterator[Entry]:
    """The source files in a tar, relative to its folder `top`. What lies beside that is left out."""
    start = f"{top}/" if top else ""
    for entry in members(plain, path):
        if _leads_out(entry.path):
            raise UserError(f"{path} is not unpacked: the path {entry.path!r} in it leads out of the tree.")
        name = entry.path.removeprefix(start)
        if not entry.path.startswith(start) or foreign(name):
            continue
        target = entry.content.removeprefix(os.fsencode(start)) if entry.kind == "same" else entry.content
        yield Entry(name, entry.kind, target)
    while plain.read(1 << 20):  # the sums of what was compressed stand at its end, after the tar's
        pass


def _leads_out(path: str) -> bool:
    return any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path


def content(files: Iterable[Entry]) -> str:
    """The digest of a tree: over the names, kinds and contents of its files, in whatever order they come."""
    return _sum(_line(entry) for entry in files)


def _line(entry: Entry) -> bytes:
    return f"{digest.of_bytes(entry.content)} {entry.kind} ".encode() + os.fsencode(entry.path) + b"\0"


def _sum(lines: Iterable[bytes]) -> str:
    return digest.of_bytes(b"".join(sorted(lines)))


def write(files: Iterable[Entry], folder: Path, name: str) -> str:
    """Write the files into the folder, which must be empty, and return the tree's digest.

    Of two files of one path the later stays, as with tar. Raises UserError, naming the source as `name`, for a path
    or a link that leads out of the folder; MachineError where the disk does not take it.
    """
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty")  # links in it would lead the files elsewhere
    try:
        lines, links = _write_files(files, folder, name)
        _make_links(links, folder, name)
    except OSError as error:
        if error.errno is None:  # what is read is damaged: bz2 raises these
            raise
        raise MachineError(f"{error.filename or folder}: cannot write: {error.strerror}") from error
    return _sum(lines.values())


def _write_files(files: Iterable[Entry], folder: Path, name: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Write all but the links, so that no link is there that a path could lead through."""
    lines: dict[str, bytes] = {}
    links: dict[str, bytes] = {}
    made = {""}
    for entry in files:
        if _leads_out(entry.path):
            raise UserError(f"{name} is not unpacked: the path {entry.path!r} in it leads out of the tree.")
        _make_folders(entry.path, folder, made, name)
        if entry.kind == "same":
            entry = _copy(entry, folder, lines, name)
        lines[entry.path] = _line(entry)
        place = os.path.join(folder, entry.path)
        if entry.kind == "link":
            links[entry.path] = entry.content
            continue
        links.pop(entry.path, None)
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except IsADirectoryError:
            raise UserError(f"{name} is not unpacked: {entry.path!r} in it is a file and a folder.") from None
        with os.fdopen(handle, "wb") as file:
            file.write(entry.content)
            file.flush()
            os.fchmod(file.fileno(), _MODES[entry.kind])
            os.utime(file.fileno(), (WRITTEN_S, WRITTEN_S))
    return lines, links


def _copy(entry: Entry, folder: Path, lines: dict[str, bytes], name: str) -> Entry:
    target = os.fsdecode(entry.content)
    kind = lines[target].split(b" ", 2)[1].decode() if target in lines else None
    if kind not in _MODES:
        raise UserError(
            f"{name} is not unpacked: {entry.path!r} in it is a link to {target!r}, which is no file of it."
        )
    return Entry(entry.path, kind, (folder / target).read_bytes())


def _make_folders(path: str, folder: Path, made: set[str], name: str) -> None:
    parent = path.rpartition("/")[0]
    if parent in made:
        return
    _make_folders(parent, folder, made, name)
    place = folder / parent
    try:
        place.mkdir(exist_ok=True)
    except FileExistsError:
        raise UserError(f"{name} is not unpacked: {parent!r} in it is a file and a folder.") from None
    place.chmod(0o755)
    made.add(parent)


def _make_links(links: dict[str, bytes], folder: Path, name: str) -> None:
    for path, target in links.items():
        place = folder / path
        if place.is_dir() and not place.is_symlink():
            raise UserError(f"{name} is not unpacked: {path!r} in it is a link and a folder.")
        place.unlink(missing_ok=True)
        os.symlink(target, os.fsencode(place))
    check_links(folder, links, name)


def check_links(folder: Path, paths: Iterable[str], name: str) -> None:
    """Raise UserError, naming the source as `name`, where one of these links in the folder leads out of it."""
    inside = os.path.realpath(folder) + "/"
    for path in paths:
        place = os.path.join(folder, path)
        if not os.path.realpath(place).startswith(inside):
            raise UserError(f"{name} is not taken: its link {path} leads out of the tree, to {os.readlink(place)}.")


def links(folder: Path) -> list[str]:
    """The paths of the links in a folder."""
    top = os.fspath(folder)
    found = [os.path.join(parent, name) for parent, folders, files in os.walk(top) for name in folders + files]
    return [os.path.relpath(path, top) for path in found if os.path.islink(path)]


def read_release(makefile: str) -> str | None:
    """The version that a kernel's top Makefile says, as 3.2.7; None where it is another program's."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", makefile, re.M))
    if not found.get("VERSION") or not found.get("PATCHLEVEL"):
        return None
    numbers = [found["VERSION"], found["PATCHLEVEL"], *filter(None, [found.get("SUBLEVEL")])]
    return ".".join(numbers) + found.get("EXTRAVERSION", "")


def release(folder: Path) -> str | None:
    """The version of the kernel whose source the folder holds; None where it holds none."""
    if not any((folder / name).is_file() for name in KCONFIG):
        return None
    try:
        return read_release((folder / "Makefile").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
