"""Kernel versions: read from text, and what is known of a kernel's version before it is had."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsexp import lock
from fsexp.errors import UserError
from fsexp.kernel import tree

Version = tuple[int, ...]

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
_VERSION = re.compile(r"\d+(?:\.\d+)+")
# The packages that carry a kernel, or its source; others of the same set, as linux-base, have versions of their own.
_CARRIERS = re.compile(r"linux-(?:image|binary|source)-\d")
_NAMED = re.compile(r"linux-(?:image|source)-(\d+(?:\.\d+)+)")
_TARBALL = re.compile(r"linux-(\d+(?:\.\d+)+)")

# Debian release -> the kernel it stays with (its release notes).
RELEASES: dict[str, Version] = {
    "squeeze": (2, 6, 32),
    "wheezy": (3, 2),
    "jessie": (3, 16),
    "stretch": (4, 9),
    "buster": (4, 19),
    "bullseye": (5, 10),
    "bookworm": (6, 1),
    "trixie": (6, 12),
}


def parse(text: str) -> Version:
    """The first version in the text: "6.1.0-57-amd64" gives (6, 1, 0), "linux-2.6.39.4" (2, 6, 39, 4).

    Raises UserError where there is none.
    """
    found = _VERSION.search(text)
    if found is None:
        raise UserError(f"'{text}' holds no version of a kernel, as 6.1 or 2.6.39.4")
    return tuple(int(part) for part in found[0].split("."))


def show(version: Version) -> str:
    """The version as text."""
    return ".".join(map(str, version))


def holds(range_: str, version: Version) -> bool:
    """Whether a range as "< 4.2" or ">= 3.0, < 3.9" holds the version; the empty range holds all."""
    for part in filter(None, map(str.strip, range_.split(","))):
        sign, number = re.fullmatch(r"([<>]=?|=)\s*([\d.]+)", part).groups()
        end = tuple(map(int, number.split(".")))
        if not _COMPARISONS[sign](_padded(version), _padded(end)):
            return False
    return True


def _padded(version: Version) -> Version:
    return (*version, 0, 0, 0, 0)[:4]


def rank(release: str) -> tuple:
    """Sorts releases as kernels came: 6.1.0-49 < 6.1.0-57 < 6.12-rc3 < 6.12 = 6.12.0 < 6.12.1.

    Raises UserError where there is no version in it.
    """
    version = parse(release)
    rest = _VERSION.split(release, maxsplit=1)[1]
    candidate = re.search(r"-rc(\d+)", rest)
    # Numbers that stand alone: those inside a word are its own, as of amd64, deb13 and a commit's hash.
    builds = tuple(map(int, re.findall(r"(?<![A-Za-z\d])\d+(?![A-Za-z])", rest)))
    return _padded(version), (0, int(candidate[1])) if candidate else (1, 0), builds


def expected(source: Mapping[str, Any], lock_file: Path | None) -> Version | None:
    """What is known of a kernel's version before it is had; None where nothing is.

    source: what `Kernel.source()` of the configuration gives, with its `mirror` where there is one. lock_file: None for
    what is known without its pins. Only files of this machine are read. The third number may lack: Debian's release
    fixes the first two.
    """
    known = {"debian": _debian, "tarball": _tarball, "tree": _tree}.get(source.get("kind", "debian"))
    return known(source, lock_file) if known else None


def least(source: Mapping[str, Any], lock_file: Path | None) -> Version | None:
    """The expected version, or else one that the kernel is not older than; None where nothing is known."""
    exact = expected(source, lock_file)
    if exact or source.get("kind", "debian") != "debian" or source.get("snapshot") or source.get("mirror"):
        return exact
    # What moves is newer than the release it is made for; sid and the like than the last one.
    return RELEASES.get(str(source.get("suite", "")).split("-")[0], max(RELEASES.values()))


def _debian(source: Mapping[str, Any], lock_file: Path | None) -> Version | None:
    from fsexp.kernel import debian  # it loads decompressors: planning most studies does without

    entries = lock.read(lock_file) if lock_file else {}
    entry = entries.get(debian.key(dict(source)), {})
    for record in entry.get("packages", []):
        if _CARRIERS.match(record["package"]):
            return parse(record["version"])
    named = _NAMED.match(source["package"])
    if named:
        # The third number of a package's name is the ABI's, and stays when the kernel's grows.
        return parse(named[1])[: 3 if named[1].startswith("2.") else 2]
    return RELEASES.get(source["suite"].removesuffix("-updates").removesuffix("-security"))


def _tarball(source: Mapping[str, Any], _: Path | None) -> Version | None:
    if source.get("release"):
        return parse(str(source["release"]))
    found = _TARBALL.match(str(source.get("url", "")).rsplit("/", 1)[-1])
    return parse(found[1]) if found else None


def _tree(source: Mapping[str, Any], _: Path | None) -> Version | None:
    found = tree.release(Path(source["path"]))
    return parse(found) if found else None
