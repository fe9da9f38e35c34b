"""What filesystem features need of a kernel, and which of them mkfs turned on by default, and when.

Tables only; `formats` reads them. docs/formats.md shows them, and a test keeps both alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsexp.kernel.version import Version


@dataclass(frozen=True)
class Kconfig:
    """An option that the kernel must be built with; upstream has it off by default since `off_since`."""

    option: str
    off_since: Version


@dataclass(frozen=True)
class Feature:
    """One feature of one type: what mkfs calls it, and the kernels that mount it for writing."""

    name: str
    first: Version
    source: str
    option: str = "-O"  # mkfs's option that turns it on and off
    ignored: bool = False  # an older kernel mounts the filesystem all the same, and leaves the feature unused
    kconfig: Kconfig | None = None
    note: str = ""


@dataclass(frozen=True)
class Era:
    """The features that mkfs turned on by default, from the first kernel of that time on."""

    kernel: Version
    program: str
    features: frozenset[str]
    source: str


@dataclass(frozen=True)
class Suite:
    """What a Debian suite's mkfs turns on by default, and what it can't make."""

    features: frozenset[str]
    lacks: frozenset[str] = frozenset()


_EXT4 = "ext4(5), KERNEL SUPPORT"
_BTRFS = "btrfs-progs, common/fsfeatures.c, compat"
_OFF = "an option since commit b96cb835e37c (Linux 5.10), by default n since 6.18; to be removed in September 2030"

FEATURES: dict[str, tuple[Feature, ...]] = {
    "ext4": (
        Feature("has_journal", (2, 4, 15), _EXT4),
        Feature("64bit", (2, 6, 28), _EXT4),
        Feature("dir_nlink", (2, 6, 28), _EXT4),
        Feature("extent", (2, 6, 28), _EXT4),
        Feature("extra_isize", (2, 6, 28), _EXT4),
        Feature("flex_bg", (2, 6, 28), _EXT4),
        Feature("huge_file", (2, 6, 28), _EXT4),
        Feature("meta_bg", (2, 6, 28), _EXT4),
        Feature("uninit_bg", (2, 6, 28), _EXT4),
        Feature("mmp", (3, 0), _EXT4),
        Feature("bigalloc", (3, 2), _EXT4),
        Feature("quota", (3, 6), _EXT4),
        Feature("inline_data", (3, 8), _EXT4),
        Feature("sparse_super2", (3, 16), _EXT4, ignored=True),
        Feature("metadata_csum", (3, 18), _EXT4),
        Feature("encrypt", (4, 1), _EXT4),
        Feature("metadata_csum_seed", (4, 4), _EXT4),
        Feature("project", (4, 5), _EXT4),
        Feature("ea_inode", (4, 13), _EXT4),
        Feature("large_dir", (4, 13), _EXT4),
        Feature("casefold", (5, 2), _EXT4),
        Feature("verity", (5, 4), _EXT4),
        Feature("stable_inodes", (5, 5), _EXT4, ignored=True),
        Feature("fast_commit", (5, 10), _EXT4, ignored=True),
        Feature("orphan_file", (5, 15), _EXT4, ignored=True),
    ),
    "btrfs": (
        Feature("mixed-bg", (2, 6, 37), _BTRFS),
        Feature(
            "nodesize", (3, 4), "btrfs(5), big_metadata", option="-n",
            note="above 4096. Older kernels mount it; then 3.2.7 panics, and 2.6.39.4 loses every file",
        ),
        Feature("quota", (3, 4), _BTRFS),
        Feature("extref", (3, 7), _BTRFS),
        Feature("raid56", (3, 9), _BTRFS),
        Feature("skinny-metadata", (3, 10), _BTRFS),
        Feature("no-holes", (3, 14), _BTRFS),
        # By -R: mkfs.btrfs 6.2 knows it by no other option, and later ones still take it.
        Feature("free-space-tree", (4, 5), _BTRFS, option="-R", note="read-only before"),
        Feature("csum", (5, 5), "mkfs.btrfs(8), CHECKSUM ALGORITHMS", option="--csum", note="other than crc32c"),
        Feature("raid1c34", (5, 5), _BTRFS),
        Feature("zoned", (5, 12), _BTRFS),
        Feature("block-group-tree", (6, 1), _BTRFS),
        Feature("raid-stripe-tree", (6, 7), _BTRFS),
        Feature("squota", (6, 7), _BTRFS),
    ),
    "xfs": (
        Feature(
            "V4", (2, 6, 0), _OFF, option="-m crc=0", kconfig=Kconfig("XFS_SUPPORT_V4", (6, 18)),
            note="the format without crc",
        ),
        Feature(
            "crc", (3, 15), "Debian's linux, NEWS for 6.18: fully supported since 3.15", option="-m",
            note="the V5 format; 3.10 to 3.14 have it as an experiment",
        ),
        Feature(
            "ftype", (3, 13), "xfs for v3.12-rc1: directory entry file type support; V4 has it since 3.13", option="-n"
        ),
        Feature("finobt", (3, 16), "commits 8e2c84df20aa, aafc3c246529 (April 2014)", option="-m"),
        Feature("sparse", (4, 2), "commit 22ce1e1472fd (May 2015)", option="-i"),
        Feature("rmapbt", (4, 8), "merge of xfs-rmap-for-linus-4.8-rc1, 0cbbc422d566", option="-m"),
        Feature("reflink", (4, 9), "commit e54b5bf9d7ae (October 2016)", option="-m"),
        Feature("bigtime", (5, 10), "pull request for Linux 5.10", option="-m"),
        Feature("inobtcount", (5, 10), "pull request for Linux 5.10", option="-m"),
        Feature("nrext64", (5, 19), "merge for Linux 5.19; no experiment since 6.5", option="-i"),
    ),
}  # fmt: skip

_EXT4_BASE = frozenset({"has_journal", "extent", "huge_file", "flex_bg", "dir_nlink", "extra_isize"})
_CONF = "e2fsprogs, misc/mke2fs.conf.in"
_CHANGES = "btrfs-progs, CHANGES"
_XFS = "xfsprogs, doc/CHANGES"
_V5 = frozenset({"crc", "ftype", "finobt"})

# btrfs-progs and xfsprogs are numbered as the kernel of their time is; e2fsprogs goes by the dates of release.
ERAS: dict[str, tuple[Era, ...]] = {
    "ext4": (
        Era((2, 6, 28), "e2fsprogs 1.41", _EXT4_BASE | {"uninit_bg"}, f"{_CONF} before cd27af3e"),
        Era(
            (4, 7), "e2fsprogs 1.43", _EXT4_BASE | {"uninit_bg", "64bit"},
            f"17 May 2016; {_CONF} at d33e690f, which put back uninit_bg, left out by mistake",
        ),
        Era((4, 16), "e2fsprogs 1.44.0", _EXT4_BASE | {"64bit", "metadata_csum"}, "7 March 2018; release notes"),
        Era(
            (6, 2), "e2fsprogs 1.47.0",
            _EXT4_BASE | {"64bit", "metadata_csum", "metadata_csum_seed", "orphan_file"},
            "5 February 2023; release notes",
        ),
    ),
    "btrfs": (
        Era((2, 6, 29), "btrfs-progs 0.19", frozenset(), f"{_CHANGES}, 3.12"),
        Era(
            (3, 12), "btrfs-progs 3.12", frozenset({"nodesize", "extref"}),
            "commit c652e4ef; common/fsfeatures.c, default",
        ),
        Era((3, 18), "btrfs-progs 3.18", frozenset({"nodesize", "extref", "skinny-metadata"}), f"{_CHANGES}, 3.18"),
        Era(
            (5, 15), "btrfs-progs 5.15",
            frozenset({"nodesize", "extref", "skinny-metadata", "no-holes", "free-space-tree"}),
            f"{_CHANGES}, 5.15",
        ),
        Era(
            (6, 19), "btrfs-progs 6.19",
            frozenset({"nodesize", "extref", "skinny-metadata", "no-holes", "free-space-tree", "block-group-tree"}),
            f"{_CHANGES}, 6.19",
        ),
    ),
    "xfs": (
        Era((2, 6, 0), "xfsprogs 3.1", frozenset({"V4"}), f"{_XFS}, 3.2.3"),
        Era((4, 1), "xfsprogs 3.2.3", _V5, f"10 June 2015; {_XFS}"),
        Era((4, 16), "xfsprogs 4.16", _V5 | {"sparse"}, f"{_XFS}, 4.16.0-rc1"),
        Era((5, 1), "xfsprogs 5.1", _V5 | {"sparse", "reflink"}, f"{_XFS}, 5.1.0-rc1; mkfs/lts_5.4.conf"),
        Era(
            (5, 15), "xfsprogs 5.15", _V5 | {"sparse", "reflink", "bigtime", "inobtcount"},
            f"{_XFS}, 5.15.0-rc1; mkfs/lts_5.15.conf",
        ),
        Era(
            (6, 5), "xfsprogs 6.5", _V5 | {"sparse", "reflink", "bigtime", "inobtcount", "rmapbt", "nrext64"},
            f"{_XFS}, 6.5.0; mkfs/lts_6.12.conf",
        ),
    ),
}  # fmt: skip


def _at(type_: str, program: str) -> frozenset[str]:
    return next(era.features for era in ERAS[type_] if era.program == program)


# Read from the packages: bookworm's mke2fs.conf leaves out what e2fsprogs 1.47.0 adds, and its mkfs.btrfs 6.2 has no
# block-group-tree, which came out of the experimental builds in 6.3.
SUITES: dict[str, dict[str, Suite]] = {
    "bookworm": {
        "ext4": Suite(_at("ext4", "e2fsprogs 1.44.0")),
        "btrfs": Suite(_at("btrfs", "btrfs-progs 5.15"), lacks=frozenset({"block-group-tree"})),
        "xfs": Suite(_at("xfs", "xfsprogs 5.15")),
    },
    "trixie": {
        "ext4": Suite(_at("ext4", "e2fsprogs 1.47.0")),
        "btrfs": Suite(_at("btrfs", "btrfs-progs 5.15")),
        "xfs": Suite(_at("xfs", "xfsprogs 6.5")),
    },
}
