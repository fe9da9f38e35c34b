"""Filesystem types and formats: how each is made and recognised, and which kernels mount what mkfs made.

A format is `common` (one that every kernel mounts), `era` (what mkfs made in the kernel's time) or a list of mkfs's
options. `resolve` turns it into options and the features that they mean, by the tables in `features`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fsexp.errors import UserError
from fsexp.image.features import ERAS, FEATURES, SUITES, Feature, Suite
from fsexp.kernel.version import Version, show

# mkfs takes this instead of a random number, so that the image's bytes depend on nothing else.
UUID = "f5e9f5e9-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Format:
    """One filesystem type."""

    magic: int  # statfs's f_type; Linux's include/uapi/linux/magic.h
    modules: tuple[str, ...]
    mkfs: tuple[str, ...]  # the program, and the options that make its output a function of its input
    packages: tuple[str, ...]  # where mkfs comes from
    least_mib: int
    oldest: Version  # what a kernel of unknown version is taken for when a common format is looked for


# ext4 and btrfs share a userland: another one in the maker's memory would change btrfs's random numbers.
_PROGRAMS = ("btrfs-progs", "e2fsprogs")

FORMATS = {
    "ext4": Format(
        magic=0xEF53,
        modules=("ext4",),
        # lazy_itable_init=0: else the kernel zeroes inode tables in the background while a phase is timed.
        mkfs=(
            "mkfs.ext4", "-q", "-F", "-U", UUID, "-E",
            f"hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0",
        ),
        packages=_PROGRAMS,
        least_mib=128,
        oldest=(2, 6, 39),
    ),
    "btrfs": Format(
        magic=0x9123683E,
        modules=("btrfs",),
        mkfs=("mkfs.btrfs", "-q", "-f", "-U", UUID),
        packages=_PROGRAMS,
        least_mib=128,  # mkfs.btrfs 6.2 refuses less than 109 MiB with DUP metadata
        oldest=(2, 6, 39),
    ),
    "xfs": Format(
        magic=0x58465342,
        modules=("xfs",),
        mkfs=("mkfs.xfs", "-q", "-f", "-m", f"uuid={UUID}"),
        packages=("xfsprogs",),  # it needs Python: 94 MB
        least_mib=300,  # mkfs.xfs refuses less since 5.19
        oldest=(3, 15),  # V5: V4 mounts on fewer and fewer kernels
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """What is known of a kernel while planning.

    version: None where it shows only once the kernel is had; `least`: one that it is not older than.
    stock: its configuration leaves at the default what the filesystems' features need.
    """

    name: str
    version: Version | None
    least: Version | None
    stock: bool


@dataclass(frozen=True)
class Made:
    """What mkfs is told, and the features of the tables that the filesystem then has, by name."""

    options: tuple[str, ...]
    features: tuple[str, ...]


class Unsupported(UserError):
    """A kernel can't mount a filesystem with this feature."""


def problem(type_: str, disk_mib: int) -> str | None:
    """Why a disk of that size can't hold that type, or None."""
    least = FORMATS[type_].least_mib
    if disk_mib < least:
        return f"disk_mib is {disk_mib}, and {type_} needs {least} at least"
    return None


def mkfs(type_: str, options: Sequence[str], *devices: str) -> list[str]:
    """The command that makes the filesystem on the devices."""
    return [*FORMATS[type_].mkfs, *options, *devices]


def resolve(
    type_: str,
    format_: str | list[str],
    kernel: Kernel,
    kernels: Sequence[Kernel],
    suite: str,
    options: Sequence[str] = (),
) -> Made:
    """The format for `kernel`, one of `kernels`, which all mount filesystems of this entry.

    suite: the Debian suite that mkfs comes from. options: more of mkfs's, after those of the format.
    Raises UserError where a kernel is known not to mount the result.
    """
    if format_ == "common":
        made = _common(type_, kernels, suite)
        if "V4" in made.features:
            _check_v4(kernels)
    elif format_ == "era":
        made = _era(type_, kernel, suite)
    else:
        made = _with((), format_, type_, suite)
    if options:
        made = _with(made.options, options, type_, suite)
    _check(type_, made.features, kernel)
    return made


def _with(options: Sequence[str], more: Sequence[str], type_: str, suite: str) -> Made:
    whole = [*options, *more]
    return Made(tuple(whole), _sorted(type_, _parsed(type_, whole, _suite(type_, suite).features)))


def check_kernel(
    type_: str, features: Iterable[str], release: str, version: Version, configuration: str | None
) -> None:
    """Raise Unsupported where the kernel, which is here now, can't mount a filesystem with these features.

    configuration: the text of its .config, None where it is not known.
    """
    for feature in _known(type_, features):
        if _too_old(feature, version):
            raise Unsupported(f"{feature.name} of {type_} needs Linux {show(feature.first)}, and this is {release}")
        option = feature.kconfig
        if option is None or configuration is None or f"CONFIG_{option.option}=y\n" in configuration:
            continue
        if version >= option.off_since or f"# CONFIG_{option.option} is not set\n" in configuration:
            raise Unsupported(f"{feature.name} of {type_} needs CONFIG_{option.option}, which {release} lacks")


def _check(type_: str, features: Iterable[str], kernel: Kernel) -> None:
    for feature in _known(type_, features):
        if kernel.version and _too_old(feature, kernel.version):
            raise UserError(
                f"{feature.name} of {type_} needs Linux {show(feature.first)}, and kernel '{kernel.name}' is "
                f"{show(kernel.version)}; turn the feature off, or say 'format: common'"
            )
        if _off(feature, kernel):
            raise UserError(
                f"{feature.name} of {type_} needs CONFIG_{feature.kconfig.option}, off by default since Linux "
                f"{show(feature.kconfig.off_since)}, and kernel '{kernel.name}' ({show(kernel.least)}) is "
                "configured so"
            )


def _check_v4(kernels: Sequence[Kernel]) -> None:
    """V4 is what the old kernels need: a sentence of its own where a new one can't mount it."""
    v4 = FEATURES["xfs"][0]
    lacking = next((kernel for kernel in kernels if _off(v4, kernel)), None)
    if lacking:
        old = min((kernel for kernel in kernels if kernel.least), key=lambda kernel: kernel.least)
        raise UserError(
            f"no XFS format is common to kernels '{old.name}' and '{lacking.name}': {show(old.least)} needs V4, which "
            f"is off by default since Linux 6.18, as in {show(lacking.least)}, and is removed in 2030; give them "
            "filesystems of their own"
        )


def _too_old(feature: Feature, version: Version) -> bool:
    return version < feature.first and not feature.ignored


def _off(feature: Feature, kernel: Kernel) -> bool:
    option = feature.kconfig
    return bool(option and kernel.stock and kernel.least and kernel.least >= option.off_since)


def _common(type_: str, kernels: Sequence[Kernel], suite: str) -> Made:
    """mkfs's defaults without what the oldest kernel does not know."""
    oldest = min(kernel.least or FORMATS[type_].oldest for kernel in kernels)
    wanted = {feature.name for feature in _known(type_, _suite(type_, suite).features) if feature.first <= oldest}
    if type_ == "ext4" and "metadata_csum" not in wanted:
        wanted.add("uninit_bg")  # what the groups' checksums were before
    if type_ == "xfs" and "crc" not in wanted:
        wanted = {"V4"} | wanted & {"ftype"}
    return _made(type_, wanted, suite)


def _era(type_: str, kernel: Kernel, suite: str) -> Made:
    if kernel.least is None:
        raise UserError(
            f"'era' needs the version of kernel '{kernel.name}', which shows only once it is had; use 'common' or a "
            "list of options"
        )
    eras = [era for era in ERAS[type_] if era.kernel <= kernel.least]
    if not eras:
        raise UserError(f"'era' begins with Linux {show(ERAS[type_][0].kernel)}, and kernel '{kernel.name}' is older")
    return _made(type_, set(eras[-1].features - _suite(type_, suite).lacks), suite)


def _suite(type_: str, suite: str) -> Suite:
    # Of another suite's mkfs nothing is known: it is taken for the newest, and told everything.
    return SUITES[suite][type_] if suite in SUITES else Suite(ERAS[type_][-1].features)


def _made(type_: str, wanted: set[str], suite: str) -> Made:
    """The options that turn on what is wanted, and off what mkfs would turn on by default besides."""
    defaults = _suite(type_, suite).features
    if suite in SUITES:
        on, off = wanted - defaults, defaults - wanted
    else:
        managed = frozenset().union(*(era.features for era in ERAS[type_]))
        on, off = wanted & managed, managed - wanted
    words: dict[str, list[str]] = {}
    for feature in _known(type_, on | off):
        option, word = _word(type_, feature, feature.name in on)
        if word:
            words.setdefault(option, []).append(word)
    options = [text for option in sorted(words) for text in (option, ",".join(words[option]))]
    return Made(tuple(options), _sorted(type_, wanted))


def _word(type_: str, feature: Feature, on: bool) -> tuple[str, str]:
    if feature.name == "nodesize":
        return "-n", "16384" if on else "4096"
    if feature.name == "V4":
        return "-m", ""  # crc's opposite says it
    if type_ == "xfs":
        return feature.option, f"{feature.name}={int(on)}"
    return feature.option, feature.name if on else f"^{feature.name}"


def _known(type_: str, names: Iterable[str]) -> list[Feature]:
    """The features of that name in the table, in its order."""
    wanted = set(names)
    return [feature for feature in FEATURES[type_] if feature.name in wanted]


def _sorted(type_: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(feature.name for feature in _known(type_, names))


# -- mkfs's own options, as far as they name features

# Long options that carry features -> the short one.
_LONG = {
    "--features": "-O",
    "--runtime-features": "-R",
    "--nodesize": "-n",
    "--leafsize": "-l",
    "--data": "-d",
    "--metadata": "-m",
    "--checksum": "--csum",
    "-c": "--csum",
}
_TAKES = {"ext4": ("-O",), "btrfs": ("-O", "-R", "-n", "-l", "--csum", "-d", "-m"), "xfs": ("-m", "-i", "-n")}
_ALIASES = {"extents": "extent", "uninit_groups": "uninit_bg", "fst": "free-space-tree", "bgt": "block-group-tree"}
_UNITS = {"": 1, "k": 1024}


def _parsed(type_: str, options: list[str], defaults: frozenset[str]) -> set[str]:
    """The features that mkfs makes with these options."""
    on = set(defaults)
    pairs = list(_pairs(type_, options))
    if type_ == "btrfs":
        _btrfs(pairs, "-M" in options or "--mixed" in options, on)
    elif type_ == "xfs":
        _xfs(pairs, on)
    else:
        for _, value in pairs:
            _words(value, on)
    return on


def _pairs(type_: str, options: list[str]) -> Iterator[tuple[str, str]]:
    """Each option that names features, by its short name, with its value."""
    rest = iter(options)
    for text in rest:
        name, equals, value = text.partition("=") if text.startswith("--") else (text[:2], "", text[2:])
        long = _LONG.get(name, name) if type_ == "btrfs" else name
        if long in _TAKES[type_]:
            yield long, value if equals or value else next(rest, "")


def _words(value: str, on: set[str]) -> None:
    """Features of `-O`: names, `^` before those that are turned off."""
    for word in filter(None, value.split(",")):
        if word == "none":
            on.clear()
        elif word.startswith("^"):
            on.discard(_ALIASES.get(word[1:], word[1:]))
        else:
            on.add(_ALIASES.get(word, word))


def _btrfs(pairs: list[tuple[str, str]], mixed: bool, on: set[str]) -> None:
    nodesize = None
    for option, value in pairs:
        if option in ("-O", "-R"):
            _words(value, on)
        elif option in ("-n", "-l"):
            nodesize = _bytes(value)
        elif option == "--csum" and value not in ("", "crc32c"):
            on.add("csum")
        elif option in ("-d", "-m") and value in ("raid1c3", "raid1c4"):
            on.add("raid1c34")
    if mixed:
        on.add("mixed-bg")
    if "block-group-tree" in on:
        on.update(("free-space-tree", "no-holes"))
    # Mixed groups have nodes of a sector's size unless told otherwise.
    if nodesize is None:
        nodesize = 4096 if "mixed-bg" in on else 16384
    (on.add if nodesize > 4096 else on.discard)("nodesize")


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kK]?)(?:i?[bB])?", text)
    if found is None:
        raise UserError(f"'{text}' is no size of a node, as 4096 or 16k")
    return int(found[1]) * _UNITS[found[2].lower()]


def _xfs(pairs: list[tuple[str, str]], on: set[str]) -> None:
    for _, value in pairs:
        for word in value.split(","):
            name, _, said = word.partition("=")
            if said in ("0", "1", ""):
                (on.add if said != "0" else on.discard)(name)
    if "crc" not in on:
        # mkfs.xfs then leaves out by itself what only V5 has; ftype V4 has too.
        on.intersection_update({"ftype"})
        on.add("V4")
