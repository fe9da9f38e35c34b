"""A userland: Debian packages unpacked into one tar for the guest, no script of theirs run."""

import io
import json
import posixpath
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fsexp import apt, deb, digest, whole

FORMAT = 1

# The links of a merged /usr, which everything finds libraries and programs through.
MERGED = ("bin", "lib", "lib64", "sbin")
_MERGED_PATHS = {*MERGED, "lib32", "libx32"}

# Of no use in the guest, and it would have to be loaded into its memory.
LEFT_OUT = tuple(
    f"usr/share/{name}/"
    for name in (
        "applications", "bash-completion", "bug", "doc", "doc-base", "fish", "gdb", "help", "icons", "info",
        "initramfs-tools", "lintian", "locale", "man", "menu", "metainfo", "pixmaps", "zsh",
    )
)  # fmt: skip


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
    found = apt.pinned(key(spec), lock_file, cache, private, lambda a: a.resolve(sorted(spec["packages"])))
    with whole.folder(output) as fresh:
        write_tar(fresh / "root.tar", entries(path for _, path in found))
        description = {
            "format": FORMAT,
            "digest": digest.of_file(fresh / "root.tar"),
            "packages": [
                {name: record[name] for name in ("package", "version", "sha256", "bytes")} for record, _ in found
            ],
        }
        _write_description(fresh, description)
    return description


def key(spec: dict) -> str:
    """The name of the source in the lock file."""
    return f"debian:{spec['suite']}:{','.join(sorted(spec['packages']))}{apt.origin(spec)}"


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
                if not name or (original in _MERGED_PATHS and member.issym()) or f"{name}/".startswith(LEFT_OUT):
                    continue
                if made := _entry(tar, member, original, name):
                    result[name] = made
    for name in list(result):
        while name := posixpath.dirname(name):
            result.setdefault(name, _Entry(tarfile.DIRTYPE, 0o755))
    return result


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
