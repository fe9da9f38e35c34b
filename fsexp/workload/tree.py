"""Make a tree of many directories, shaped like Subversion 1.6 working copies in a build server's workspace.

libsvn_wc keeps, for each versioned directory, `.svn` with `entries`, `format` and `all-wcprops`, and eight directories,
text-base (a twin of each file) the only one that is not empty. That makes 9 directories for each versioned one; nine
working files, their twins and the three administrative files make 21 files, 2.33 for each directory, where the tree of
Jacek Luczak's mail ("getdents - ext4 vs btrfs performance", linux-ext4, 29 February 2012: 1,978,149 files, 844,008
directories) has 2.34. How deep that tree was and how its sizes were distributed is not published: here each versioned
directory has up to four below it, five levels in each working copy, and sizes are lognormal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op
from fsexp.pattern import Pattern

# Working files for each versioned directory, and the directories that belong to one: see above.
_FILES = 9
_DIRECTORIES = 9
_ADMINISTRATION = ("text-base", "prop-base", "props", "tmp", "tmp/text-base", "tmp/prop-base", "tmp/props")
# Versioned directories of a working copy: five levels of four each, 1 + 4 + 16 + 64 + 256.
_COPY = 341
_NAMES = (
    "Makefile", "README.txt", "build.xml", "Main.java", "util.c", "config.properties", "index.html", "parser.h",
    "package.jar",
)  # fmt: skip
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL

# Quantiles, in bytes, of a lognormal distribution with median 3 kB and sigma 2.2, which was assumed for the sizes. The
# mean is 28 kB; the mail's 54 GB in 1,978,149 files are 27 kB each. Written out, since the last bit of a logarithm may
# differ between machines.
SIZES = (
    8, 20, 32, 43, 55, 68, 81, 95, 109, 124, 140, 156, 173, 191, 209, 228, 248, 269, 291, 313, 336, 361, 386, 412, 439,
    468, 497, 527, 559, 592, 626, 662, 698, 737, 776, 817, 860, 905, 951, 998, 1048, 1100, 1153, 1209, 1267, 1327, 1389,
    1454, 1522, 1592, 1665, 1741, 1820, 1902, 1987, 2076, 2169, 2265, 2365, 2470, 2579, 2693, 2812, 2936, 3065, 3200,
    3341, 3488, 3642, 3803, 3972, 4149, 4334, 4528, 4731, 4944, 5168, 5404, 5651, 5912, 6186, 6475, 6779, 7101, 7440,
    7799, 8179, 8582, 9009, 9462, 9944, 10457, 11004, 11587, 12210, 12878, 13594, 14363, 15190, 16083, 17047, 18092,
    19227, 20462, 21812, 23290, 24915, 26709, 28696, 30907, 33381, 36164, 39314, 42904, 47030, 51814, 57419, 64071,
    72079, 81895, 94191, 110027, 131172, 160834, 205528, 281005, 438917, 1043943,
)  # fmt: skip


class Parameters(BaseModel):
    """Parameters of tree."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="tree")

    directories: int = Field(
        default=900, ge=9, le=10_000_000, description="directories, nine for each versioned one; published: 844,008"
    )


def phases(_: Parameters) -> list[str]:
    """Making the tree, and writing it out."""
    return ["populate", "sync"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """The tree in the directory `workspace`."""
    yield op.phase("populate")
    yield from populate("workspace", parameters.directories)
    yield op.phase_end()
    yield op.phase("sync")
    yield op.sync()
    yield op.phase_end()


def populate(top: str, directories: int) -> Iterator[bytes]:
    """Make the tree below the new directory `top`, in the order of a checkout; no phase, no sync.

    A versioned directory's administrative files come first, then each file's twin and the file itself.
    """
    yield op.mkdir(top, 0o755)
    places: list[str] = []  # the versioned directories of the working copy that is being made
    files = 0
    for number in range(directories // _DIRECTORIES):
        copy, within = divmod(number, _COPY)
        if within == 0:
            job = f"{top}/job-{copy:04d}"
            places = [job]
        else:
            places.append(f"{places[(within - 1) // 4]}/src{within:03d}")
        yield op.mkdir(places[within], 0o755)
        yield from _administration(f"{places[within]}/.svn", number)
        for name in _NAMES:
            # One of the quantiles for each file, in an order without a pattern: 73 and 128 have no common factor.
            size = SIZES[files * 73 % len(SIZES)]
            yield from _file(f"{places[within]}/.svn/text-base/{name}.svn-base", 0o444, files, size)
            yield from _file(f"{places[within]}/{name}", 0o644, files, size)
            files += 1


def _administration(folder: str, number: int) -> Iterator[bytes]:
    yield op.mkdir(folder, 0o755)
    for name in _ADMINISTRATION:
        yield op.mkdir(f"{folder}/{name}", 0o755)
    # `entries` has about 120 bytes for each file, `all-wcprops` 100, `format` a number and a line feed.
    yield from _file(f"{folder}/entries", 0o444, number, 200 + 120 * _FILES)
    yield from _file(f"{folder}/all-wcprops", 0o444, number, 100 * _FILES)
    yield from _file(f"{folder}/format", 0o444, number, 3)


def _file(path: str, mode: int, seed: int, size_bytes: int) -> Iterator[bytes]:
    yield op.open(0, path, _CREATE, mode)
    yield op.write_data(0, Pattern.TEXT, seed, size_bytes)
    yield op.close(0)
