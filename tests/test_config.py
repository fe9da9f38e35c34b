"""The configuration: what is refused, and the sentence that says so."""

import copy
import datetime
import subprocess
import sys

import pytest
import yaml

from fsexp import config
from fsexp.errors import UserError
from fsexp.vm import domain

GOOD = {
    "kernels": {
        "debian-6.1": {"debian": {"suite": "bookworm"}},
        "newest": {"debian": {"suite": "trixie-backports"}},
    },
    "filesystems": {"ext4": {"type": "ext4"}, "btrfs": {"type": "btrfs"}},
    "experiments": {
        "create-unlink": {
            "title": "t",
            "question": "q",
            "workload": {"name": "create-unlink", "nfiles": 10},
            "kernels": ["debian-6.1"],
            "filesystems": ["ext4"],
            "seeds": 2,
        }
    },
}

E = "experiments.create-unlink"


def published(*figures):
    """An entry with a figure for each (phase, filesystem)."""
    each = [{"phase": phase, "filesystem": filesystem, "elapsed_s": 1.0} for phase, filesystem in figures]
    return [{"source": "s", "date": "d", "scale": {}, "figures": each}]


def figures(*changes):
    """An entry with a figure for each mapping of what it says otherwise; None: not."""
    plain = {"phase": "create", "filesystem": "ext4", "elapsed_s": 1.0}
    each = [{name: value for name, value in (plain | one).items() if value is not None} for one in changes]
    return [{"source": "s", "date": "d", "scale": {}, "figures": each}]


SSD = {"model": "ssd", "mib": 256}
# (path of the key to set, its value) -> the whole sentence.
BAD = [
    (
        "experiments.create-unlink.workload",
        {"name": "tree-walk", "programs": 2012},
        "experiments.create-unlink.workload.programs: must be text: write it in quotes (it is 2012)",
    ),
    ("only", ["create-unlnk"], "only: no experiment 'create-unlnk'; did you mean 'create-unlink'?"),
    ("only", [], "only: must not be empty"),
    ("experimens", {}, "no such key 'experimens'; did you mean 'experiments'?"),
    (f"{E}.sede", 1, f"{E}: no such key 'sede'; did you mean 'seeds'?"),
    (f"{E}.workload.nfile", 1, f"{E}.workload: no such key 'nfile'; did you mean 'nfiles'?"),
    (f"{E}.workload.nfiles", 0, f"{E}.workload.nfiles: must be greater than or equal to 1 (it is 0)"),
    (f"{E}.workload.nfiles", "5", f'{E}.workload.nfiles: must be a whole number (it is "5")'),
    (f"{E}.workload.nfiles", 2.5, f"{E}.workload.nfiles: must be a whole number (it is 2.5)"),
    (
        f"{E}.workload.name",
        "create-unlik",
        f"{E}.workload.name: no workload 'create-unlik'; did you mean 'create-unlink'?",
    ),
    (
        f"{E}.workload",
        {},
        f"{E}.workload: 'name' is missing; known are "
        "create-unlink, inline-small-files, tree, tree-walk, package-upgrade, commands, fault",
    ),
    (f"{E}.seeds", 0, f"{E}.seeds: 0 seeds: at least one is needed"),
    (f"{E}.seeds", -1, f"{E}.seeds: -1 seeds: at least one is needed"),
    (f"{E}.seeds", [1, -1], f"{E}.seeds.1: must be greater than or equal to 0 (it is -1)"),
    (f"{E}.seeds", [], f"{E}.seeds: must not be empty"),
    (f"{E}.seeds", [1, 1], f"{E}.seeds: a seed stands twice, which would measure nothing new"),
    (f"{E}.seeds", "3", f"{E}.seeds: must be a number of seeds or a list of them"),
    (f"{E}.seeds", True, f"{E}.seeds: must be a number of seeds or a list of them"),
    (f"{E}.kernels", ["debian-61"], f"{E}.kernels: no entry 'debian-61' under kernels; did you mean 'debian-6.1'?"),
    (f"{E}.filesystems", ["xt4"], f"{E}.filesystems: no entry 'xt4' under filesystems; did you mean 'ext4'?"),
    (f"{E}.filesystems", ["jffs"], f"{E}.filesystems: no entry 'jffs' under filesystems; known are ext4, btrfs"),
    (
        f"{E}.kernels",
        ["newest", "newest"],
        f"{E}.kernels: two levels are named 'newest'; give one of them another name",
    ),
    (
        f"{E}.published",
        published(("creat", "ext4")),
        f"{E}.published.0: no phase 'creat'; did you mean 'create'?",
    ),
    ("filesystems.ext4.type", "xt4", "filesystems.ext4.type: no such value 'xt4'; did you mean 'ext4'?"),
    ("filesystems.ext4.disk_mib", 1, "filesystems.ext4.disk_mib: must be greater than or equal to 128 (it is 1)"),
    ("filesystems.ext4.format", "comon", "filesystems.ext4.format: no such value 'comon'; did you mean 'common'?"),
    (
        "filesystems.ext4.mount",
        "noatime\tx",
        "filesystems.ext4.mount: must not contain tabs, line feeds or other control characters",
    ),
    ("kernels.newest", {"debin": {}}, "kernels.newest: no such key 'debin'; did you mean 'debian'?"),
    (
        "kernels.newest",
        {},
        "kernels.newest: one source is needed, of debian, tarball, tree, git, image; there is none",
    ),
    (
        "kernels.newest",
        {"debian": {"suite": "sid"}, "tree": {"path": "linux"}},
        "kernels.newest: one source is needed, of debian, tarball, tree, git, image; there is 'debian' and 'tree'",
    ),
    (
        "kernels.newest",
        {"debian": {"suite": "sid"}, "fragments": ["my.config"]},
        "kernels.newest: 'fragments' is for kernels that are built from source, and this one is built already",
    ),
    (
        "kernels.newest",
        {"tarball": {"release": 3.10}},
        "kernels.newest.tarball.release: 3.1 is read as a number by YAML: write it in quotes",
    ),
    (
        "kernels.newest",
        {"tarball": {"url": "linux.tar.xz"}},
        "kernels.newest.tarball: 'release' is needed, or 'url' and 'sha256'",
    ),
    (
        "kernels.newest",
        {"tarball": {"release": "2.6.39.9"}},
        "kernels.newest.tarball: the digest of Linux 2.6.39.9 is not known here; give the tarball's url and sha256, "
        "or did you mean 2.6.39.4?",
    ),
    (
        "kernels.newest",
        {"tarball": {"url": "linux.tar.xz", "sha256": "abc"}},
        "kernels.newest.tarball.sha256: must be a sha256: 64 hexadecimal digits",
    ),
    (
        "kernels.newest",
        {"tree": {"path": "linux"}, "compiler": "gcc; rm -rf"},
        "kernels.newest.compiler: must be a program's name, or a path of letters, digits and ._+-/ "
        '(it is "gcc; rm -rf")',
    ),
    ("kernels.newest", None, "kernels.newest: must be a mapping of keys to values (it is empty)"),
    (
        "kernels.newest.debian.snapshot",
        "2024-02-30",
        "kernels.newest.debian.snapshot: '2024-02-30' is no date as 2024-01-31 and no moment as 20240131T000000Z",
    ),
    (
        "kernels.newest.debian.build",
        True,
        "kernels.newest.debian: 'build' needs a package of kernel source, as linux-source-6.1, not linux-image-amd64",
    ),
    (
        "kernels.newest.debian.package",
        "linux-source",
        "kernels.newest.debian: linux-source is kernel source: say 'build: true'",
    ),
    ("kernels.newest.debian.ladder", {"from": "6.16"}, "kernels.newest.debian.ladder.to: is missing"),
    (
        "kernels.newest.debian.ladder",
        {"form": "6.16", "to": "7.3"},
        "kernels.newest.debian.ladder: no such key 'form'; did you mean 'from'?",
    ),
    (
        "kernels.newest.debian.ladder",
        {"from": 6.16, "to": "7.3"},
        "kernels.newest.debian.ladder.from: must be text: write it in quotes (it is 6.16)",
    ),
    (
        "kernels.newest.debian.ladder",
        {"from": "7.3", "to": "6.16"},
        "kernels.newest.debian: the ladder's 'from' (7.3) is above its 'to' (6.16)",
    ),
    (
        "kernels.newest.debian.ladder",
        {"from": "6.16", "to": "7.3", "each": "miner"},
        "kernels.newest.debian.ladder.each: no such value 'miner'; did you mean 'minor'?",
    ),
    (
        "kernels.newest.debian",
        {"suite": "sid", "package": "linux-image-7.3.4+deb14-amd64", "ladder": {"from": "6.16", "to": "7.3"}},
        "kernels.newest.debian: 'ladder' needs the package of a flavour, as linux-image-amd64, "
        "not linux-image-7.3.4+deb14-amd64",
    ),
    (
        "maker",
        {"kernel": {"debian": {"suite": "sid", "ladder": {"from": "6.16", "to": "7.3"}}}},
        "maker.kernel.debian.ladder: the maker VM needs one kernel, and a ladder has several",
    ),
    (
        "snapshot_mirror",
        "http://snapshots.test/{archive}",
        "snapshot_mirror: must be an address with {timestamp} in it, and {archive} where the archives differ by that",
    ),
    ("kernels", [], "kernels: must be a mapping of keys to values"),
    ("kernels", {}, "kernels: must not be empty"),
    ("clock", "wal", "clock: no such value 'wal'; known are virtual"),
    ("limits", {"hang_s": 0}, "limits.hang_s: must be greater than 0 (it is 0)"),
    ("clock", None, "clock: must be one of virtual (it is empty)"),
    ("clock", True, "clock: must be one of virtual (it is true)"),
    ("filesystems.ext4.type", "xfs9", "filesystems.ext4.type: no such value 'xfs9'; did you mean 'xfs'?"),
    (
        "filesystems.ext4.format",
        ["-b", 4096],
        "filesystems.ext4.format.1: must be text: write it in quotes (it is 4096)",
    ),
    ("filesystems.ext4.mount", 1, "filesystems.ext4.mount: must be text: write it in quotes (it is 1)"),
    ("title", None, "title: must be text (it is empty)"),
    ("title", "", "title: must not be empty"),
    ("title", " \n", "title: must not be empty"),
    ("title", "a\0b", 'the configuration: the text "a\\u0000b" has a character that no file can hold'),
    ("title", "a\ud800", 'the configuration: the text "a\\ud800" has a character that no file can hold'),
    (f"{E}.title", "", f"{E}.title: must not be empty"),
    (f"{E}.question", "", f"{E}.question: must not be empty"),
    (f"{E}.seeds", 1_000_000_000, f"{E}.seeds: 1000000000 seeds: 100000 is the most"),
    (f"{E}.seeds", list(range(100_001)), f"{E}.seeds: 100001 seeds: 100000 is the most"),
    ("results", "", "results: must not be empty"),
    ("results", "/", 'results: must be a folder of its own, not this one or one around it (it is "/")'),
    ("results", ".", 'results: must be a folder of its own, not this one or one around it (it is ".")'),
    ("results", "x/..", 'results: must be a folder of its own, not this one or one around it (it is "x/..")'),
    ("results", "../..", 'results: must be a folder of its own, not this one or one around it (it is "../..")'),
    ("results", "~/x", "results: must be written out: '~' means nothing here (it is \"~/x\")"),
    ("results", "a{b}", 'results: must not have braces, by which Snakemake marks wildcards (it is "a{b}")'),
    ("results", "a\nb", "results: must not contain tabs, line feeds or other control characters"),
    (
        "results",
        "cache",
        'cache: must not be in the folder of results, which may be removed without it (cache is "cache", '
        'results is "cache")',
    ),
    (
        "cache",
        "results/cache",
        'cache: must not be in the folder of results, which may be removed without it (cache is "results/cache", '
        'results is "results")',
    ),
    (
        "results",
        "cache/results",
        'results: must not be in the folder of cache, which may be removed without it (results is "cache/results", '
        'cache is "cache")',
    ),
    (
        "mirror",
        "not a url",
        'mirror: must be the URL of a Debian mirror, as http://mirror.example.org/debian (it is "not a url")',
    ),
    (
        "mirror",
        "mirror.example.org/debian",
        "mirror: must be the URL of a Debian mirror, as http://mirror.example.org/debian "
        '(it is "mirror.example.org/debian")',
    ),
    (
        "kernels.newest",
        {"debian": {"suite": "Bookworm 12"}},
        "kernels.newest.debian.suite: must be the name of a Debian suite, as bookworm or trixie-backports "
        '(it is "Bookworm 12")',
    ),
    (
        "kernels.newest",
        {"debian": {"suite": "sid", "package": "Linux Image"}},
        "kernels.newest.debian.package: must be the name of a Debian package: small letters, digits, '+', '.' and '-' "
        '(it is "Linux Image")',
    ),
    (
        "machine",
        {"type": "pc-nope"},
        'machine.type: must be one of QEMU\'s machine types with its version, as pc-i440fx-7.2 (it is "pc-nope")',
    ),
    ("limits", {"hang_s": float("inf")}, "limits.hang_s: must be a number that ends (it is Infinity)"),
    ("limits", {"timeout_s": float("nan")}, "limits.timeout_s: must be a number that ends (it is NaN)"),
    (
        "limits",
        {"hang_s": 60, "timeout_s": 30},
        "limits: hang_s is 60 and timeout_s 30: the whole run must be given as long at least",
    ),
    (
        f"{E}.published",
        published(("create", "btrfs")),
        f"{E}.published.0: the experiment has no filesystem 'btrfs'; known are ext4",
    ),
    (
        f"{E}.published",
        published(("create", "ext4"), ("create", "ext4")),
        f"{E}.published.0: two figures are of the phase 'create' on 'ext4'",
    ),
    ("disks", {"slow": {"model": "hd"}}, "disks.slow.model: no such value 'hd'; did you mean 'hdd'?"),
    ("disks", {"slow": {}}, "disks.slow: one of model, devices, bcache is needed; there is none"),
    (
        "disks",
        {"slow": {"model": "hdd", "devices": []}},
        "disks.slow: one of model, devices, bcache is needed; there is 'model' and 'devices'",
    ),
    ("disks", {"slow": {"model": "hdd", "cache": SSD}}, "disks.slow: 'cache' does not go with 'model'"),
    (
        "disks",
        {"slow": {"model": "hdd", "latency_ms": 1}},
        "disks.slow: no such key 'latency_ms'; did you mean 'latency_us'?",
    ),
    ("disks", {"slow": {"model": "hdd", "mib": 1}}, "disks.slow.mib: must be greater than or equal to 16 (it is 1)"),
    (
        "disks",
        {"slow": {"model": "ram", "latency_us": 10}},
        "disks.slow: 'latency_us' is for ssd and hdd; a RAM disk answers at once",
    ),
    (
        "disks",
        {"both": {"devices": [{"model": "ssd"}, {"model": "ram", "queue_depth": 4}]}},
        "disks.both.devices.1: 'queue_depth' is for ssd and hdd; a RAM disk answers at once",
    ),
    (
        "disks",
        {"both": {"devices": [{"model": "hdd"}]}},
        "disks.both: 'devices' is for two and more; write the keys of one device under the disk itself",
    ),
    (
        "disks",
        {"both": {"devices": [{"name": "a", "model": "hdd"}, {"name": "a", "model": "ssd"}]}},
        "disks.both: two devices are named 'a'; give one of them another name",
    ),
    ("disks", {"both": {"devices": [{"name": "a"}, SSD]}}, "disks.both.devices.0.model: is missing"),
    (
        "disks",
        {"cached": {"bcache": "writeback", "backing": {"model": "hdd"}}},
        "disks.cached: 'cache' is missing: bcache needs 'backing' and 'cache'",
    ),
    (
        "disks",
        {"cached": {"bcache": "writeback", "backing": {"model": "hdd"}, "cache": {"model": "ssd"}}},
        "disks.cached: 'cache' needs 'mib', its size",
    ),
    (
        "disks",
        {"cached": {"bcache": "writebak", "backing": {"model": "hdd"}, "cache": SSD}},
        "disks.cached.bcache: no such value 'writebak'; did you mean 'writeback'?",
    ),
    (
        "disks",
        {"ram": {"model": "hdd"}},
        "disks.ram: 'ram' is the RAM disk that is always there; give this one another name",
    ),
    (f"{E}.disks", ["hdd"], f"{E}.disks: no entry 'hdd' under disks; known are ram"),
    (f"{E}.disks", ["ram", "ram"], f"{E}.disks: two levels are named 'ram'; give one of them another name"),
    (f"{E}.variants", {"few": {"nfile": 3}}, f"{E}.variants.few: no such key 'nfile'; did you mean 'nfiles'?"),
    (f"{E}.variants", {"few": {"name": "fault"}}, f"{E}.variants.few: no such key 'name'; known are nfiles"),
    (f"{E}.variants", {"few": {"nfiles": 0}}, f"{E}.variants.few.nfiles: must be greater than or equal to 1 (it is 0)"),
    (f"{E}.variants", {"few": 3}, f"{E}.variants.few: must be a mapping of keys to values (it is 3)"),
    (
        f"{E}.published",
        figures({"kernel": "debian-61"}),
        f"{E}.published.0: the experiment has no kernel 'debian-61'; did you mean 'debian-6.1'?",
    ),
    (
        f"{E}.published",
        figures({"variant": "sync"}),
        f"{E}.published.0: the experiment has no variant 'sync'; it has no variants",
    ),
    (
        f"{E}.published",
        figures({"elapsed_s": None}),
        f"{E}.published.0.figures.0: one of elapsed_s, used_bytes, ratio is needed; there is none",
    ),
    (
        f"{E}.published",
        figures({"used_bytes": 3}),
        f"{E}.published.0.figures.0: one of elapsed_s, used_bytes, ratio is needed; there is 'elapsed_s' and "
        "'used_bytes'",
    ),
    (
        f"{E}.published",
        figures({"elapsed_s": None, "ratio": 1.5}),
        f"{E}.published.0.figures.0: 'ratio' and 'ratio_to' go together: the number, and what it is to",
    ),
    (
        f"{E}.published",
        figures({"elapsed_s": None, "ratio": 1.5, "ratio_to": {}}),
        f"{E}.published.0.figures.0.ratio_to: one of phase, kernel, filesystem, disk, variant is needed: what the "
        "other side differs in",
    ),
    (
        f"{E}.published",
        figures({"elapsed_s": None, "ratio": 1.5, "ratio_to": {"disk": "ssd"}}),
        f"{E}.published.0: the experiment has no disk 'ssd' for its ratio; known are ram",
    ),
    (
        f"{E}.published",
        figures({"elapsed_s": None, "ratio": 1.5, "ratio_to": {"phase": "delet"}}),
        f"{E}.published.0: no phase 'delet'; did you mean 'delete'?",
    ),
    (f"{E}.published", figures({"kind": "data"}), f"{E}.published.0.figures.0: 'kind' is for used space"),
    (
        f"{E}.published",
        figures({"elapsed_s": None, "used_bytes": 1, "raw": True}),
        f"{E}.published.0.figures.0: 'raw' needs a 'kind', of which btrfs keeps copies",
    ),
    (f"{E}.published", figures({"of": "used_bytes"}), f"{E}.published.0.figures.0: 'of' is for a ratio"),
    (
        f"{E}.published",
        figures({"kernel": "debian-6.1"}, {"kernel": "debian-6.1"}),
        f"{E}.published.0: two figures are of the phase 'create' on 'ext4', debian-6.1",
    ),
    ("machine", {"memory_mib": "1G"}, 'machine.memory_mib: must be a whole number (it is "1G")'),
]


def changed(path, value):
    data = copy.deepcopy(GOOD)
    *above, last = _parts(path)
    at = data
    for part in above:
        at = at[part]
    at[last] = value
    return data


def _parts(path):
    return path.split(".")


def test_a_snapshots_day_may_stand_without_quotes():
    data = yaml.safe_load("{suite: bookworm, snapshot: 2024-01-31}")
    kernel = config.validate(changed("kernels.newest", {"debian": data})).kernels["newest"]
    assert kernel.source()["snapshot"] == "2024-01-31"


def test_good():
    assert config.validate(copy.deepcopy(GOOD)).experiments["create-unlink"].seeds == [1, 2]


@pytest.mark.parametrize(("path", "value", "sentence"), BAD, ids=[f"{path}={value}"[:60] for path, value, _ in BAD])
def test_bad(path, value, sentence):
    with pytest.raises(UserError) as caught:
        config.validate(changed(path, value))
    assert str(caught.value) == sentence


SECTIONS = ["kernels", "filesystems", "disks", "experiments"]


def with_disks(disks, filesystem="ext4", **others):
    data = copy.deepcopy(GOOD) | {"disks": disks}
    data["experiments"]["create-unlink"] |= {"disks": list(disks), "filesystems": [filesystem]} | others
    return data


def test_the_forms_of_a_disk():
    made = config.validate(
        with_disks(
            {
                "slow": {"model": "hdd", "latency_us": 9000, "mib": 512},
                "both": {"devices": [{"name": "fast", "model": "ssd", "mib": 200}, {"model": "hdd"}]},
                "cached": {"bcache": "writeback", "backing": {"model": "hdd"}, "cache": SSD},
            },
            "btrfs",
        )
    )
    assert list(made.disks) == ["ram", "slow", "both", "cached"]
    assert [made.disks[name].form for name in made.disks] == ["model", "model", "devices", "bcache"]
    assert [made.disks[name].sizes_mib(1024) for name in made.disks] == [(1024,), (512,), (200, 1024), (1024,)]
    assert [part.model for part in made.disks["cached"].parts] == ["hdd", "ssd"]
    # As it is written down for the rules' commands.
    assert config.validate(made.model_dump()) == made


@pytest.mark.parametrize(
    ("disk", "filesystem", "sentence"),
    [
        (
            {"devices": [SSD, SSD]},
            "ext4",
            f"{E}.disks: 'x' has 2 devices, which btrfs can use and filesystem 'ext4', ext4, can't",
        ),
        ({"model": "ssd", "mib": 64}, "ext4", "disks.x: mib is 64, and ext4 needs 128 at least for filesystem 'ext4'"),
        (
            {"devices": [SSD, {"model": "hdd", "mib": 100}]},
            "btrfs",
            "disks.x: mib is 100, and btrfs needs 128 at least for filesystem 'btrfs'",
        ),
    ],
)
def test_a_disk_that_does_not_fit_the_filesystem(disk, filesystem, sentence):
    with pytest.raises(UserError) as caught:
        config.validate(with_disks({"x": disk}, filesystem))
    assert str(caught.value) == sentence


def test_a_variant_may_give_what_the_workload_leaves_out():
    data = copy.deepcopy(GOOD)
    data["experiments"]["create-unlink"] |= {
        "workload": {"name": "fault"},
        "variants": {"end": {"kind": "exit"}, "loop": {"kind": "spin"}},
    }
    assert list(config.validate(data).experiments["create-unlink"].variants) == ["end", "loop"]
    data["experiments"]["create-unlink"]["workload"]["knd"] = "exit"
    with pytest.raises(UserError, match=f"^{E}.workload: no such key 'knd'; did you mean 'kind'"):
        config.validate(data)


def test_figures_of_each_kind():
    data = with_disks({"slow": {"model": "hdd"}}, variants={"few": {"nfiles": 2}})
    data["experiments"]["create-unlink"]["published"] = figures(
        {},
        {"kernel": "debian-6.1"},
        {"disk": "slow", "variant": "few"},
        {"elapsed_s": None, "used_bytes": 7, "kind": "metadata"},
        {"elapsed_s": None, "ratio": 2, "ratio_to": {"phase": "delete"}, "of": "used_bytes"},
        {"elapsed_s": None, "ratio": 2.5, "ratio_to": {"disk": "slow"}},
    )
    made = config.validate(data)
    assert config.validate(made.model_dump()) == made


@pytest.mark.parametrize("section", SECTIONS)
def test_number_as_label(section):
    data = with_disks({"slow": {"model": "hdd"}})
    data[section][6.1] = next(iter(data[section].values()))
    with pytest.raises(UserError, match=r"6\.1 is read as a number by YAML: write it in quotes"):
        config.validate(data)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        # What YAML makes of on, an empty key and 2024-01-31.
        (True, "a name such as on, off, yes, no, true, false is read as a truth value: write it in quotes"),
        (None, "a name that is empty, null or ~ is read as no value: write it in quotes, or give one"),
        (datetime.date(2024, 1, 31), "the name 2024-01-31 is read as a date by YAML: write it in quotes"),
        ("", "a name must not be empty"),
        ("a\nb", 'the name "a\\nb" has a line break or another control character'),
        ("a\u0085b", 'the name "a\\u0085b" has a line break or another control character'),
        ("a\u2028b", 'the name "a\\u2028b" has a line break or another control character'),
        ("x" * 201, "the name is 201 characters long; 200 is the most"),
    ],
)
def test_labels_that_are_refused(section, label, sentence):
    data = with_disks({"slow": {"model": "hdd"}})
    data[section][label] = next(iter(data[section].values()))
    with pytest.raises(UserError) as caught:
        config.validate(data)
    assert str(caught.value) == f"{section}: {sentence}"


def test_a_label_is_refused_in_a_list_too():
    with pytest.raises(UserError) as caught:
        config.validate(changed(f"{E}.kernels", [True]))
    assert str(caught.value).startswith(f"{E}.kernels.0: a name such as on, off")


@pytest.mark.parametrize(
    "mirror",
    [
        "http://mirror.example.org/debian",
        "https://mirror.example.org:8080/debian/",
        "ftp://mirror.example.org",
        "file:/srv/debian",
        "file:///srv/debian",
        "mirror+file:/etc/apt/mirrors.txt",
        "tor+http://mirror.example.org/debian",
        "https://user:word@mirror.example.org/debian",
    ],
)
def test_mirrors(mirror):
    assert config.validate(changed("mirror", mirror)).mirror == mirror


def patterns(part):
    """Every regular expression of the schema."""
    if isinstance(part, list):
        return {found for value in part for found in patterns(value)}
    if not isinstance(part, dict):
        return set()
    own = {part["pattern"]} if isinstance(part.get("pattern"), str) else set()
    return own | patterns(list(part.values()))


def test_no_sentence_shows_a_regular_expression():
    found = patterns(config.schema())
    assert len(found) > 3
    assert found <= set(config._FORMS)


@pytest.mark.parametrize("results", ["results-2", "../beside", "deep/er", "/somewhere/else", "Ergebnisse ä"])
def test_folders(results):
    assert config.validate(changed("results", results)).results == results


@pytest.mark.parametrize(
    ("limits", "hang_s", "timeout_s"),
    [({}, 300, 3600), ({"timeout_s": 60}, 60, 60), ({"hang_s": 4000}, 4000, 4000), ({"hang_s": 20}, 20, 3600)],
)
def test_a_limit_that_is_not_given_follows(limits, hang_s, timeout_s, tmp_path):
    study = config.validate(changed("limits", limits))
    assert (study.limits.hang_s, study.limits.timeout_s) == (hang_s, timeout_s)
    assert config.load([config.snapshot(study, tmp_path)]) == study


def test_kernel_arguments_fit_the_command_line():
    longest = config.COMMAND_LINE_BYTES
    low, high = 0, longest
    while high - low > 1:
        middle = (low + high) // 2
        try:
            study = config.validate(changed("machine", {"kernel_arguments": "x" * middle}))
            low = middle
        except UserError as error:
            assert str(error).startswith("machine.kernel_arguments: the kernel's command line would be ")
            high = middle
    study = config.validate(changed("machine", {"kernel_arguments": "x" * low}))
    # 2048 bytes with the NUL (x86's COMMAND_LINE_SIZE); a disk of six digits of KiB here.
    assert len(domain.command_line(study.machine.model_dump(), ["brd.rd_nr=1", "brd.rd_size=1048576"])) == 2047
    with pytest.raises(UserError, match="too long"):
        config.validate(changed("machine", {"kernel_arguments": "a=1 " * 750}))


def test_two_unicode_forms_of_one_label():
    data = copy.deepcopy(GOOD)
    data["kernels"] |= {"\u00e9": data["kernels"]["newest"], "e\u0301": data["kernels"]["newest"]}
    with pytest.raises(UserError, match="two levels are named 'é'"):
        config.validate(data)


def test_a_label_in_its_other_unicode_form_is_found():
    data = copy.deepcopy(GOOD)
    data["kernels"]["caf\u00e9"] = data["kernels"]["newest"]
    data["experiments"]["create-unlink"]["kernels"] = ["cafe\u0301"]
    assert config.validate(data).experiments["create-unlink"].kernels == ["caf\u00e9"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\na: 2\n", "line 2: 'a' stands twice; give one of them another name"),
        ("a:\n  b: 1\n  b: 2\n", "line 3: 'b' stands twice; give one of them another name"),
        ("a: [1\n", "line 2: expected ',' or ']', but got '<stream end>'"),
        ("- a\n", "the configuration must be a mapping of keys to values"),
        ("a: 1\n? [b]\n: 2\n", "line 2: a key must be text, and this one is a list or a mapping"),
        ("a: 1\n? {b: 1}\n: 2\n", "line 2: a key must be text, and this one is a list or a mapping"),
        ("a: 1\nb: x\0y\n", "line 2: the character U+0000 can't stand in YAML"),
        ('a: "x\\0y"\n', 'the text "x\\u0000y" has a character that no file can hold'),
        ('{"a": "x\0y"}', "line 1: this is not JSON: Invalid control character at"),
        ('{"a": "\\ud800"}', 'the text "\\ud800" has a character that no file can hold'),
        ('{"a": 1,\n "a": 2}', "'a' stands twice; give one of them another name"),
        ('{"a": 1,\n b}', "line 2: this is not JSON: Expecting property name enclosed in double quotes"),
        ("a: &b [*b]\n", "line 1: found unconstructable recursive node"),
        ("a: " + "[" * 60 + "]" * 60, "values are nested too deeply"),
        ("a: " + "[" * 5000 + "]" * 5000, "values are nested too deeply"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "values are nested too deeply"),
        (
            "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" if n else "a0: &a0 [1]" for n in range(9)),
            "there are too many values",
        ),
        ("a: 2024-02-31\n", "a value can't be read: day is out of range for month"),
    ],
)
def test_bad_file(tmp_path, text, sentence):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        config.read(path)
    assert str(caught.value).endswith(sentence)
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(UserError, match="is not UTF-8 text: byte 3 is not"):
        config.read(path)
    path.write_bytes("\ufeffa: 1\n".encode())
    assert config.read(path) == {"a": 1}


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="can't be read: Is a directory"):
        config.read(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="there is no configuration file"):
        config.read(tmp_path / "none.yaml")


def test_later_files_override(tmp_path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(config.json.dumps(GOOD))
    two.write_text("experiments:\n  create-unlink:\n    workload: {nfiles: 50000}\n")
    merged = config.load([one, two], {"title": "T"})
    assert merged.experiments["create-unlink"].workload == {"name": "create-unlink", "nfiles": 50000}
    assert merged.title == "T"


def test_snapshot_reads_back_as_the_same(tmp_path):
    study = config.validate(copy.deepcopy(GOOD))
    assert config.load([config.snapshot(study, tmp_path)]) == study


def test_command_exits_1_with_one_sentence(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(config.json.dumps(changed("experimens", {})))
    done = subprocess.run(
        [sys.executable, "-m", "fsexp.cli", "plan", "--config", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "fsexp: no such key 'experimens'; did you mean 'experiments'?\n"


def test_only_some_experiments():
    data = copy.deepcopy(GOOD)
    # Left out before it is looked at: it may not fit the rest.
    data["experiments"]["other"] = {"workload": {"name": "of another version"}}
    assert list(config.validate(data | {"only": ["create-unlink"]}).experiments) == ["create-unlink"]
    with pytest.raises(UserError, match=r"^experiments\.other"):
        config.validate(data)
