"""The configuration: what is refused, and the sentence that says so."""

import copy
import subprocess
import sys

import pytest
import yaml

from fsexp import config
from fsexp.errors import UserError

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
# (path of the key to set, its value) -> the whole sentence.
BAD = [
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
    (f"{E}.workload", {}, f"{E}.workload: 'name' is missing; known are create-unlink, fault"),
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
        [
            {
                "source": "s",
                "date": "d",
                "scale": {},
                "figures": [{"phase": "creat", "filesystem": "x", "elapsed_s": 1.0}],
            }
        ],
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
    ("kernels.newest", {}, "kernels.newest.debian: is missing"),
    ("kernels.newest", None, "kernels.newest: must be a mapping of keys to values"),
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
        "kernels.newest.debian.ladder.from: must be text (it is 6.16)",
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


@pytest.mark.parametrize("section", ["kernels", "filesystems", "experiments"])
def test_number_as_label(section):
    data = copy.deepcopy(GOOD)
    data[section][6.1] = next(iter(data[section].values()))
    with pytest.raises(UserError, match=r"6\.1 is read as a number by YAML: write it in quotes"):
        config.validate(data)


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
    ],
)
def test_bad_file(tmp_path, text, sentence):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        config.read(path)
    assert str(caught.value).endswith(sentence)
    assert str(path) in str(caught.value)


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
