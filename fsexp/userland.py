"""A userland: Debian packages unpacked into one tar for the guest, no script of theirs run.

A name as `deb:hello` is of a package that is carried as it is, in /fsexp/debs/hello.deb: for dpkg to unpack there.
"""

import fnmatch
import io
import json
import posixpath
import struct
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fsexp import apt, deb, digest, whole
from fsexp.errors import UserError
from fsexp.kernel import version

FORMAT = 1

# The links of a merged /usr, which everything finds libraries and programs through.
MERGED = ("bin", "lib", "lib64", "sbin")
_MERGED_PATHS = {*MERGED, "lib32", "libx32"}

# Of no use in the guest, and it would have to be loaded into its memory.
LEFT_OUT = (
    *(
        f"usr/share/{name}/"
        for name in (
            "applications", "bash-completion", "bug", "common-licenses", "doc", "doc-base", "fish", "gdb", "gtk-doc",
            "help", "icons", "info", "initramfs-tools", "lintian", "locale", "man", "menu", "metainfo", "pixmaps",
            "vim", "zoneinfo", "zsh",
        )
    ),
    "usr/lib/locale/",
    "usr/lib/systemd/system/",
)  # fmt: skip
# Likewise, by patterns of the whole path: tests and caches of Python, Perl's documentation, glibc's tables of other
# character sets (LC_ALL is C), what only a linker reads.
LEFT_OUT_PATTERNS = (
    "usr/lib/python3*/test/*",
    "usr/lib/python3*/*/tests/*",
    "usr/lib/python3*/idlelib/*",
    "usr/lib/python3*/ensurepip/*",
    "*/__pycache__/*",
    "*.pyc",
    "usr/*/perl*/*.pod",
    "usr/lib/*/gconv/*",
    "usr/lib/*.a",
)

# What programs need of that which maintainer scripts make; only where the packages have nothing there.
MADE = {
    # base-passwd's postinst. dpkg and tar look root up by name, as do find and id.
    "etc/passwd": b"root:x:0:0:root:/:/bin/sh\n",
    "etc/group": b"root:x:0:\n",
}
# Links that are made likewise, where their target is there: dash's postinst of bullseye, mawk's by update-alternatives.
LINKED = {"usr/bin/sh": "dash", "usr/bin/awk": "mawk"}

# Interpreters that programs' packages depend on for a script beside the program, as fio for its plotter: with both,
# fio's root was 179 MB. They are unpacked only where one of their packages is named.
INTERPRETERS = (
    ("python3*", "libpython3*"),
    ("perl", "perl-base", "perl-modules-*", "libperl5*"),
)

# What the C library names the oldest kernel with that it starts on: an ELF note of 16 bytes of the type
# NT_GNU_ABI_TAG (1), owned by "GNU", of the system Linux (0). On an older one each program ends with "FATAL: kernel too
# old" (glibc's elf/dl-sysdep and csu/libc-start).
_ABI_TAG = struct.pack("<III4sI", 4, 16, 1, b"GNU", 0)
_C_LIBRARY = "usr/lib/x86_64-linux-gnu/libc.so.6"

_CARRIED = "deb:"
DEBS = "fsexp/debs"


class Unsupported(UserError):
    """A kernel is too old for the programs."""


@dataclass(frozen=True)
class _Entry:
    kind: bytes
    mode: int
    target: str = ""
    content: bytes = b""


def fetch(spec: dict, cache: Path, lock_file: Path, output: Path) -> dict:
    """Put userland.json and root.tar into the folder `output`, replacing it; return userland.json's content.

    spec: {"suite", "packages": [names]} and optional keys as `apt.private` takes them. Versions come from
    `lock_file`, which gets an entry when it has none. UserError or MachineError says why it can't be had;
    `output` is then as it was.
    """
    suite = spec["suite"]
    suites = [suite]
    if "-backports" in suite:  # only a part of the archive: the rest comes from the release itself
        suites.append(suite.split("-backports")[0])
    private = apt.private(spec, suites, cache)
    installed, taken = _kinds(spec["packages"])
    found, debs = [], []
    if installed:
        found = apt.pinned(key(spec), lock_file, cache, private, lambda a: a.resolve(installed))
        found = [(record, path) for record, path in found if _wanted(record["package"], installed)]
    if taken:
        # As they are, without what they depend on: dpkg is told to unpack these and no others.
        own = _key(spec, [f"{_CARRIED}{name}" for name in taken])
        debs = apt.pinned(own, lock_file, cache, private, lambda a: [apt.record(a.show(name)) for name in taken])
    with whole.folder(output) as fresh:
        tree = entries(path for _, path in found)
        for record, path in debs:
            tree[f"{DEBS}/{record['package']}.deb"] = _Entry(tarfile.REGTYPE, 0o644, content=path.read_bytes())
        write_tar(fresh / "root.tar", tree)
        description = {
            "format": FORMAT,
            "digest": digest.of_file(fresh / "root.tar"),
            "least_kernel": _least_kernel(tree),
            "packages": [
                {name: record[name] for name in ("package", "version", "sha256", "bytes")}
                for record, _ in (*found, *debs)
            ],
        }
        _write_description(fresh, description)
    return description


def check_kernel(description: dict, release: str) -> None:
    """Raise Unsupported where the programs of that userland.json don't start on a kernel of that release."""
    least = description.get("least_kernel")
    if least and version.holds(f"< {least}", version.parse(release)):
        raise Unsupported(f"the C library of the programs needs Linux {least}, and this is {release}")


def _least_kernel(tree: dict[str, _Entry]) -> str | None:
    """The oldest kernel that the C library starts on; None where there is none of glibc's."""
    content = tree[_C_LIBRARY].content if _C_LIBRARY in tree else b""
    found = content.find(_ABI_TAG)
    if found < 0:
        return None
    return version.show(struct.unpack_from("<III", content, found + len(_ABI_TAG)))


def key(spec: dict) -> str:
    """The name of the source in the lock file: of what is unpacked."""
    return _key(spec, _kinds(spec["packages"])[0])


def _key(spec: dict, names: list[str]) -> str:
    return f"debian:{spec['suite']}:{','.join(names)}{apt.origin(spec)}"


def _kinds(packages: Iterable[str]) -> tuple[list[str], list[str]]:
    """The packages that are unpacked and those that are carried, by name."""
    names = sorted(packages)
    return (
        [name for name in names if not name.startswith(_CARRIED)],
        [name.removeprefix(_CARRIED) for name in names if name.startswith(_CARRIED)],
    )


def _wanted(package: str, named: list[str]) -> bool:
    """Whether a package is unpacked, where those are named: an interpreter is only where it is asked for."""
    for family in INTERPRETERS:
        if any(fnmatch.fnmatchcase(package, pattern) for pattern in family):
            return any(fnmatch.fnmatchcase(name, pattern) for name in named for pattern in family)
    return True


def carried(package: str) -> str:
    """The name of a package that is carried as it is."""
    return f"{_CARRIED}{package}"


def deb_path(package: str) -> str:
    """Where in the guest a package that is carried lies."""
    return f"/{DEBS}/{package}.deb"


def _write_description(directory: Path, description: dict) -> None:
    text = json.dumps(description, indent=1, sort_keys=True) + "\n"
    (directory / "userland.json").write_text(text, encoding="utf-8")


def entries(debs: Iterable[Path]) -> dict[str, _Entry]:
    """What the packages install, by path, /usr merged; hard links are entries of kind LNKTYPE."""
    result = {name: _Entry(tarfile.SYMTYPE, 0o777, f"usr/{name}") for name in MERGED}
    result |= {f"usr/{name}": _Entry(tarfile.DIRTYPE, 0o755) for name in MERGED}
    for path in debs:
        with deb.contents(path) as tar:
            for member in tar.getmembers():
                original = deb.installed_path(member.name, merged=False)
                name = deb.installed_path(member.name)
                if not name or (original in _MERGED_PATHS and member.issym()) or _left_out(name):
                    continue
                if made := _entry(tar, member, original, name):
                    result[name] = made
    for name, content in MADE.items():
        result.setdefault(name, _Entry(tarfile.REGTYPE, 0o644, content=content))
    for name, target in LINKED.items():
        if posixpath.join(posixpath.dirname(name), target) in result:
            result.setdefault(name, _Entry(tarfile.SYMTYPE, 0o777, target))
    for name in list(result):
        while name := posixpath.dirname(name):
            result.setdefault(name, _Entry(tarfile.DIRTYPE, 0o755))
    return result


def _left_out(name: str) -> bool:
    return f"{name}/".startswith(LEFT_OUT) or any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT_OUT_PATTERNS)


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, original: str, name: str) -> _Entry | None:
    mode = member.mode & 0o1777  # no set-user-ID: in the guest everything is root's
    if member.isdir():
        return _Entry(tarfile.DIRTYPE, mode)
    if member.issym():
        return _Entry(tarfile.SYMTYPE, 0o777, _moved_target(member.linkname, original, name))
    if member.islnk():
        return _Entry(tarfile.LNKTYPE, mode, deb.installed_path(member.linkname))
    if member.isfile():
        return _Entry(tarfile.REGTYPE, mode, content=tar.extractfile(member).read())
    return None  # device nodes: the guest's kernel makes them


def _moved_target(target: str, original: str, name: str) -> str:
    """A symbolic link's target after the link itself moved under usr/."""
    if target.startswith("/") or original == name:
        return target
    absolute = posixpath.normpath(posixpath.join("/", posixpath.dirname(original), target))
    return posixpath.relpath("/" + deb.installed_path(absolute), "/" + posixpath.dirname(name))


def write_tar(path: Path, tree: dict[str, _Entry]) -> None:
    """Write the entries as an uncompressed tar whose bytes depend on nothing but them."""
    first: dict[str, str] = {}  # a hard link's target -> the first name of the file in the tar
    with path.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(tree):
            entry = tree[name]
            target = entry.target if entry.kind == tarfile.LNKTYPE else name
            source = tree.get(target, entry)
            member = tarfile.TarInfo(name)
            member.type, member.mode = source.kind, source.mode
            if source.kind == tarfile.SYMTYPE:
                member.linkname = source.target
            elif source.kind == tarfile.REGTYPE:
                if target in first:
                    member.type, member.linkname = tarfile.LNKTYPE, first[target]
                else:
                    first[target] = name
                    member.size = len(source.content)
            elif source.kind == tarfile.LNKTYPE:
                continue  # its file was left out
            tar.addfile(member, io.BytesIO(source.content) if member.size else None)
    path.chmod(0o644)
