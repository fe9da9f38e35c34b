"""Which kernel mounts what: the expected values are from ext4(5), btrfs(5), mkfs.btrfs(8), xfsprogs' doc/CHANGES and
mkfs/*.conf, and from what Linux 2.6.39.4 and 3.2.7 were seen to mount."""

import pytest

from fsexp.errors import UserError
from fsexp.image import features, formats
from fsexp.image.formats import Kernel


def kernel(name, stock=False):
    numbers = tuple(map(int, name.split(".")))
    return Kernel(name, numbers, numbers, stock)


UNKNOWN = Kernel("unknown", None, None, False)


def resolve(type_, format_, *names, suite="bookworm"):
    kernels = [kernel(name) for name in names]
    return formats.resolve(type_, format_, kernels[0], kernels, suite)


# -- lists: (type, options, kernel, the feature that it can't mount or None)

LISTS = [
    ("ext4", [], "2.6.39.4", "metadata_csum"),
    ("ext4", [], "3.16.85", "metadata_csum"),
    ("ext4", [], "3.18", None),
    ("ext4", ["-O", "^64bit"], "2.6.39.4", "metadata_csum"),
    ("ext4", ["-O", "^metadata_csum"], "2.6.39.4", None),
    ("ext4", ["-O", "^metadata_csum,quota"], "2.6.39.4", "quota"),
    ("ext4", ["-O^metadata_csum,inline_data"], "3.2.7", "inline_data"),
    ("ext4", ["-O", "^metadata_csum,bigalloc"], "2.6.39.4", "bigalloc"),
    ("ext4", ["-O", "^metadata_csum", "-O", "bigalloc"], "3.2.7", None),
    ("ext4", ["-b", "1024", "-O", "^has_journal,^metadata_csum"], "2.6.39.4", None),
    ("ext4", ["-O", "none,extent"], "2.6.39.4", None),
    ("ext4", ["-O", "metadata_csum_seed"], "4.3", "metadata_csum_seed"),
    ("ext4", ["-O", "large_dir"], "4.12", "large_dir"),
    ("ext4", ["-O", "casefold"], "5.2", None),
    # An older kernel passes over what only speeds things up ("compat" in ext4(5)).
    ("ext4", ["-O", "orphan_file"], "5.10", None),
    ("ext4", ["-O", "fast_commit"], "4.19", None),
    ("btrfs", [], "3.2.7", "nodesize"),
    ("btrfs", ["-n", "4096", "-O", "^extref", "-R", "^free-space-tree"], "3.2.7", "skinny-metadata"),
    ("btrfs", ["-n4k", "-O", "^extref,^skinny-metadata", "-R", "^free-space-tree"], "3.2.7", "no-holes"),
    ("btrfs", ["--nodesize=4k", "-O", "^extref,^skinny-metadata,^no-holes"], "3.2.7", "free-space-tree"),
    (
        "btrfs",
        ["-O", "^extref,^skinny-metadata,^no-holes", "-R", "^free-space-tree", "-n", "16384"],
        "3.2.7",
        "nodesize",
    ),
    ("btrfs", ["-n", "4096", "-O", "^extref,^skinny-metadata,^no-holes,^free-space-tree"], "2.6.39.4", None),
    ("btrfs", ["-M", "-O", "^extref,^skinny-metadata,^no-holes,^fst"], "2.6.39.4", None),
    ("btrfs", ["-R", "^free-space-tree"], "3.16.85", None),
    ("btrfs", [], "4.4", "free-space-tree"),
    ("btrfs", [], "4.5", None),
    ("btrfs", ["--csum", "xxhash"], "5.4.302", "csum"),
    ("btrfs", ["--csum=crc32c"], "5.4.302", None),
    ("btrfs", ["--checksum", "blake2"], "5.5", None),
    ("btrfs", ["-O", "block-group-tree"], "5.15", "block-group-tree"),
    ("btrfs", ["-O", "squota"], "6.6", "squota"),
    ("xfs", [], "2.6.39.4", "crc"),
    ("xfs", [], "4.8", "reflink"),
    ("xfs", [], "5.9.16", "bigtime"),
    ("xfs", [], "5.10", None),
    ("xfs", ["-m", "crc=0"], "2.6.39.4", "ftype"),
    ("xfs", ["-m", "crc=0", "-n", "ftype=0"], "2.6.39.4", None),
    (
        "xfs",
        ["-m", "crc=0,finobt=0,reflink=0,rmapbt=0,bigtime=0,inobtcount=0", "-i", "sparse=0", "-n", "ftype=0"],
        "3.2.7",
        None,
    ),
    ("xfs", ["-m", "reflink=0,bigtime=0,inobtcount=0", "-i", "sparse=0"], "3.16.85", None),
    ("xfs", ["-m", "reflink=0,bigtime=0,inobtcount=0"], "3.16.85", "sparse"),
    ("xfs", ["-i", "nrext64=1"], "5.18", "nrext64"),
    ("xfs", ["-m", "rmapbt"], "5.10", None),
]


@pytest.mark.parametrize(("type_", "options", "name", "feature"), LISTS, ids=str)
def test_list(type_, options, name, feature):
    if feature is None:
        assert resolve(type_, options, name).options == tuple(options)
        return
    with pytest.raises(UserError, match=rf"^{feature} of {type_} needs Linux [0-9.]+, and kernel '{name}' is {name};"):
        resolve(type_, options, name)


def test_the_whole_sentence():
    with pytest.raises(UserError) as caught:
        resolve("btrfs", ["-n", "16384", "-O", "^extref,^skinny-metadata,^no-holes", "-R", "^free-space-tree"], "3.2.7")
    assert str(caught.value) == (
        "nodesize of btrfs needs Linux 3.4, and kernel '3.2.7' is 3.2.7; turn the feature off, or say 'format: common'"
    )


def test_another_suites_mkfs_has_other_defaults():
    # trixie's mke2fs.conf turns metadata_csum_seed on, bookworm's does not.
    assert resolve("ext4", [], "3.18", suite="bookworm")
    with pytest.raises(UserError, match="metadata_csum_seed"):
        resolve("ext4", [], "3.18", suite="trixie")


def test_options_beside_a_format():
    both = [kernel("3.18"), kernel("6.1.192")]
    made = formats.resolve("btrfs", "common", both[0], both, "bookworm", ["-n", "4096", "-m", "single"])
    assert made.options == ("-R", "^free-space-tree", "-n", "4096", "-m", "single")
    assert "nodesize" not in made.features
    assert "no-holes" in made.features


def test_options_that_a_kernel_does_not_mount():
    with pytest.raises(UserError, match=r"^nodesize of btrfs needs Linux 3\.4, and kernel '3.2.7' is 3.2.7"):
        formats.resolve("btrfs", "common", kernel("3.2.7"), [kernel("3.2.7")], "bookworm", ["-n", "16k"])


def test_no_size():
    with pytest.raises(UserError, match="'big' is no size of a node"):
        resolve("btrfs", ["-n", "big"], "6.1")


def test_a_kernel_of_unknown_version_is_not_judged():
    assert formats.resolve("ext4", ["-O", "quota"], UNKNOWN, [UNKNOWN], "bookworm").options == ("-O", "quota")


# -- common

V4 = ("-i", "sparse=0", "-m", "crc=0,finobt=0,reflink=0,bigtime=0,inobtcount=0", "-n", "ftype=0")
BTRFS_2011 = ("-O", "^extref,^skinny-metadata,^no-holes", "-R", "^free-space-tree", "-n", "4096")
COMMON = [
    ("ext4", ["6.1.192", "7.3.4"], ()),
    ("ext4", ["3.18", "7.3.4"], ()),
    ("ext4", ["7.3.4", "3.16.85"], ("-O", "uninit_bg,^metadata_csum")),
    ("ext4", ["2.6.39.4", "7.3.4"], ("-O", "uninit_bg,^metadata_csum")),
    ("btrfs", ["6.1.192", "7.3.4"], ()),
    ("btrfs", ["7.3.4", "3.16.85"], ("-R", "^free-space-tree")),
    ("btrfs", ["3.2.7", "7.3.4"], BTRFS_2011),
    ("btrfs", ["2.6.39.4", "3.2.7"], BTRFS_2011),
    ("xfs", ["6.1.192", "7.3.4"], ()),
    ("xfs", ["7.3.4", "5.4.302"], ("-m", "bigtime=0,inobtcount=0")),
    ("xfs", ["4.19.325", "7.3.4"], ("-m", "bigtime=0,inobtcount=0")),
    ("xfs", ["3.16.85", "7.3.4"], ("-i", "sparse=0", "-m", "reflink=0,bigtime=0,inobtcount=0")),
    ("xfs", ["2.6.39.4", "3.2.7"], V4),
    # 3.10 to 3.14 have V5 as an experiment.
    ("xfs", ["3.13"], (*V4[:-2],)),
]


@pytest.mark.parametrize(("type_", "names", "options"), COMMON, ids=str)
def test_common(type_, names, options):
    made = {formats.resolve(type_, "common", kernel(name), [*map(kernel, names)], "bookworm") for name in names}
    assert [one.options for one in made] == [options]


@pytest.mark.parametrize(
    ("type_", "options"),
    [("ext4", ("-O", "uninit_bg,^metadata_csum")), ("btrfs", BTRFS_2011)],
)
def test_common_with_a_kernel_of_unknown_version(type_, options):
    kernels = [kernel("6.1.192"), UNKNOWN]
    assert formats.resolve(type_, "common", kernels[0], kernels, "bookworm").options == options


def test_common_xfs_is_v5_for_a_kernel_of_unknown_version():
    made = formats.resolve("xfs", "common", UNKNOWN, [UNKNOWN], "bookworm")
    assert "crc" in made.features and "V4" not in made.features


def test_an_unknown_mkfs_is_told_everything():
    option, words = resolve("ext4", "common", "3.16.85", suite="sid").options
    assert option == "-O"
    assert set(words.split(",")) == {
        "64bit", "dir_nlink", "extent", "extra_isize", "flex_bg", "has_journal", "huge_file", "uninit_bg",
        "^metadata_csum", "^metadata_csum_seed", "^orphan_file",
    }  # fmt: skip


# -- V4 of XFS

NEW_STOCK = Kernel("new", (6, 18, 3), (6, 18, 3), True)


def test_no_common_xfs_of_old_and_new_stock_kernels():
    kernels = [kernel("3.2.7"), NEW_STOCK]
    for one in kernels:
        with pytest.raises(UserError) as caught:
            formats.resolve("xfs", "common", one, kernels, "bookworm")
        assert str(caught.value) == (
            "no XFS format is common to kernels '3.2.7' and 'new': 3.2.7 needs V4, which is off by default since Linux "
            "6.18, as in 6.18.3, and is removed in 2030; give them filesystems of their own"
        )


def test_v4_of_old_stock_kernels_and_new_ones_built_here():
    kernels = [kernel("3.2.7"), kernel("6.18.3"), Kernel("6.17", (6, 17), (6, 17), True)]
    assert formats.resolve("xfs", "common", kernels[1], kernels, "bookworm").options == V4


def test_v4_by_a_list():
    with pytest.raises(UserError, match=r"V4 of xfs needs CONFIG_XFS_SUPPORT_V4, .* kernel 'new' \(6\.18\.3\)"):
        formats.resolve("xfs", ["-m", "crc=0"], NEW_STOCK, [NEW_STOCK], "bookworm")


SET, UNSET, ABSENT = "CONFIG_XFS_SUPPORT_V4=y\n", "# CONFIG_XFS_SUPPORT_V4 is not set\n", "CONFIG_XFS_FS=y\n"


@pytest.mark.parametrize(
    ("numbers", "configuration", "mounts"),
    [
        # Debian's 7.3.4-1~bpo13+1 sets it.
        ((7, 3, 4), SET, True),
        ((7, 3, 4), UNSET, False),
        ((6, 1, 0), SET, True),
        ((6, 1, 0), UNSET, False),
        # There was no such option before 5.10.
        ((3, 2, 7), ABSENT, True),
        ((9, 9, 0), ABSENT, False),
    ],
)
def test_v4_by_the_configuration(numbers, configuration, mounts):
    if mounts:
        formats.check_kernel("xfs", ["V4"], "r", numbers, configuration)
        return
    with pytest.raises(formats.Unsupported, match="V4 of xfs needs CONFIG_XFS_SUPPORT_V4, which r lacks"):
        formats.check_kernel("xfs", ["V4"], "r", numbers, configuration)


def test_a_kernel_that_turned_out_too_old():
    formats.check_kernel("ext4", ["extent", "metadata_csum", "orphan_file"], "r", (3, 18, 140), "")
    with pytest.raises(formats.Unsupported, match=r"^metadata_csum of ext4 needs Linux 3\.18, and this is 3\.2\.7$"):
        formats.check_kernel("ext4", ["extent", "metadata_csum", "orphan_file"], "3.2.7", (3, 2, 7), "")


# -- era

ERA = [
    ("ext4", "2.6.39.4", ("-O", "uninit_bg,^64bit,^metadata_csum")),
    ("ext4", "4.6.7", ("-O", "uninit_bg,^64bit,^metadata_csum")),
    ("ext4", "4.9", ("-O", "uninit_bg,^metadata_csum")),
    ("ext4", "4.15", ("-O", "uninit_bg,^metadata_csum")),
    ("ext4", "4.19", ()),
    ("ext4", "6.1.192", ()),
    ("ext4", "7.3.4", ("-O", "metadata_csum_seed,orphan_file")),
    ("btrfs", "3.2.7", BTRFS_2011),
    ("btrfs", "3.12", ("-O", "^skinny-metadata,^no-holes", "-R", "^free-space-tree")),
    ("btrfs", "3.18", ("-O", "^no-holes", "-R", "^free-space-tree")),
    ("btrfs", "5.10", ("-O", "^no-holes", "-R", "^free-space-tree")),
    ("btrfs", "5.15", ()),
    # mkfs.btrfs 6.2 has no block-group-tree.
    ("btrfs", "7.3.4", ()),
    ("xfs", "2.6.39.4", V4),
    ("xfs", "4.0", V4),
    ("xfs", "4.1", ("-i", "sparse=0", "-m", "reflink=0,bigtime=0,inobtcount=0")),
    # xfsprogs' mkfs/lts_4.19.conf, lts_5.4.conf, lts_5.15.conf, lts_6.1.conf
    ("xfs", "4.19.325", ("-m", "reflink=0,bigtime=0,inobtcount=0")),
    ("xfs", "5.4.302", ("-m", "bigtime=0,inobtcount=0")),
    ("xfs", "5.15", ()),
    ("xfs", "6.1.192", ()),
    ("xfs", "6.12", ("-i", "nrext64=1", "-m", "rmapbt=1")),
]


@pytest.mark.parametrize(("type_", "name", "options"), ERA, ids=str)
def test_era(type_, name, options):
    made = resolve(type_, "era", name, "6.6")
    assert sorted(_words(made.options)) == sorted(_words(options))


def _words(options):
    return {(option, word) for option, words in zip(options[::2], options[1::2], strict=True)
            for word in words.split(",")}  # fmt: skip


def test_era_of_trixies_mkfs():
    assert resolve("btrfs", "era", "7.3.4", suite="trixie").options == ("-O", "block-group-tree")


def test_era_needs_a_version():
    with pytest.raises(UserError, match="'era' needs the version of kernel 'unknown', which shows only once it is had"):
        formats.resolve("ext4", "era", UNKNOWN, [UNKNOWN], "bookworm")


@pytest.mark.parametrize("type_", formats.FORMATS)
def test_every_era_mounts_on_the_kernels_of_its_time(type_):
    for era in features.ERAS[type_]:
        formats.check_kernel(type_, era.features, "r", era.kernel, "")


# -- the tables themselves


@pytest.mark.parametrize("type_", formats.FORMATS)
def test_tables_name_the_same_features(type_):
    known = {feature.name for feature in features.FEATURES[type_]}
    for era in features.ERAS[type_]:
        assert era.features <= known
    for suite in features.SUITES.values():
        assert suite[type_].features <= known and suite[type_].lacks <= known


def test_least_sizes():
    assert formats.problem("xfs", 299) == "disk_mib is 299, and xfs needs 300 at least"
    assert formats.problem("xfs", 300) is None
