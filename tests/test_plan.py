"""The plan: folders, and what a change of the configuration changes."""

import copy
import re
from pathlib import Path

import pytest
from test_config import GOOD

from fsexp import config, lock, plan
from fsexp.errors import UserError
from fsexp.workload import create_unlink

LABELS = [
    "6.1",
    "a b",
    "a_b",
    "7 %",
    "x=1&y",
    '6.1<b>&"',
    "Ядро",
    "\u00e9",
    "..",
    ".",
    "a/b",
    "~",
    "A",
    "a",
    "x" * 200,
    "$(id)",
]


def study(**changes):
    data = copy.deepcopy(GOOD)
    for path, value in changes.items():
        at = data
        *above, last = path.split("__")
        for part in above:
            at = at[part]
        at[last] = value
    return config.validate(data)


@pytest.mark.parametrize("label", LABELS)
def test_slug_is_a_plain_folder_name(label):
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+~-]{0,70}", plan.slug(label))


def test_no_two_labels_share_a_slug():
    slugs = [plan.slug(label) for label in LABELS]
    assert len(set(slugs)) == len(LABELS)


def test_a_plain_label_is_its_own_slug():
    assert plan.slug("debian-6.1") == "debian-6.1"


def test_runs_cross_the_factors_in_order():
    data = copy.deepcopy(GOOD)
    data["experiments"]["create-unlink"] |= {"kernels": ["newest", "debian-6.1"], "filesystems": ["ext4", "btrfs"]}
    folders = [one.folder for one in plan.runs(config.validate(data))]
    assert folders == [
        "runs/create-unlink/newest,ext4/1",
        "runs/create-unlink/newest,ext4/2",
        "runs/create-unlink/newest,btrfs/1",
        "runs/create-unlink/newest,btrfs/2",
        "runs/create-unlink/debian-6.1,ext4/1",
        "runs/create-unlink/debian-6.1,ext4/2",
        "runs/create-unlink/debian-6.1,btrfs/1",
        "runs/create-unlink/debian-6.1,btrfs/2",
    ]


def fingerprint(study_):
    return plan.fingerprint(study_, next(plan.runs(study_)))


@pytest.mark.parametrize(
    "change",
    [
        {"kernels__debian-6.1": {"debian": {"suite": "sid"}}},
        {"filesystems__ext4": {"type": "ext4", "mount": "noatime"}},
        {"machine": {"memory_mib": 512}},
        {"limits": {"hang_s": 5.0}},
        {"experiments__create-unlink__workload": {"name": "create-unlink", "nfiles": 11}},
        {"experiments__create-unlink__seeds": [7]},
    ],
)
def test_what_changes_a_run(change):
    assert fingerprint(study(**change)) != fingerprint(study())


@pytest.mark.parametrize(
    "change",
    [
        {"title": "another"},
        {"filesystems__btrfs": {"type": "btrfs", "mount": "noatime"}},
        {"experiments__create-unlink__title": "another"},
        {"experiments__create-unlink__seeds": 9},
        {"kernels__another": {"debian": {"suite": "sid"}}},
        {"strict": True},
    ],
)
def test_what_does_not(change):
    assert fingerprint(study(**change)) == fingerprint(study())


def key(filesystem="ext4", kernel="debian-6.1", **changes):
    return plan.image_key(study(**changes), filesystem, kernel)


def test_mount_options_do_not_change_the_image():
    assert key(filesystems__ext4={"type": "ext4", "mount": "noatime"}) == key()
    assert key(filesystems__ext4={"type": "ext4", "disk_mib": 512}) != key()


# Debian 7 has Linux 3.2, Debian 8 3.16, Debian 12 6.1.
OLD = {
    "kernels": {name: {"debian": {"suite": name}} for name in ("wheezy", "jessie", "bookworm")},
    "experiments__create-unlink__kernels": ["wheezy", "jessie", "bookworm"],
}


def test_common_is_one_image_for_all_kernels():
    keys = {made.key for made in plan.images(study(**OLD)).values()}
    assert len(keys) == 1
    # Without the old kernels, nothing has to be left out.
    assert keys != {made.key for made in plan.images(study()).values()}


def test_a_kernel_that_is_crossed_with_other_filesystems_plays_no_part():
    kernels = {"debian-6.1": {"debian": {"suite": "bookworm"}}, "old": {"debian": {"suite": "wheezy"}}}
    assert key(kernels=kernels) == key()


def test_era_is_one_image_for_each_set_of_options():
    made = plan.images(study(**OLD, filesystems__ext4={"type": "ext4", "format": "era"}))
    assert made["ext4", "wheezy", "ram"] == made["ext4", "jessie", "ram"] != made["ext4", "bookworm", "ram"]
    assert made["ext4", "bookworm", "ram"].key == key()
    assert made["ext4", "wheezy", "ram"].options == ("-O", "^64bit,uninit_bg,^metadata_csum")


def test_a_list_is_one_image():
    options = ["-O", "^metadata_csum"]
    made = plan.images(study(**OLD, filesystems__ext4={"type": "ext4", "format": options}))
    assert {one.options for one in made.values()} == {tuple(options)}
    assert len({one.key for one in made.values()}) == 1


def test_a_list_that_a_kernel_does_not_mount():
    with pytest.raises(UserError) as caught:
        plan.images(study(**OLD, filesystems__ext4={"type": "ext4", "format": ["-O", "^metadata_csum,inline_data"]}))
    assert str(caught.value) == (
        "filesystems.ext4.format: inline_data of ext4 needs Linux 3.8, and kernel 'wheezy' is 3.2; turn the feature "
        "off, or say 'format: common'"
    )


def xfs(new):
    kernels = {"old": {"debian": {"suite": "wheezy"}}, "new": {"debian": {"suite": new}}}
    return study(
        kernels=kernels, filesystems__ext4={"type": "xfs"}, **{"experiments__create-unlink__kernels": list(kernels)}
    )


def pin(suite, name, version):
    records = [{"package": name, "version": version}]
    lock.put(Path("kernels.lock"), f"debian:{suite}:linux-image-amd64", {"packages": records})


def test_xfs_v4_and_debians_kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pin("sid", "linux-binary-7.2.6-amd64", "7.2.6-1")
    pin("trixie-backports", "linux-binary-7.3.4+deb13-amd64", "7.3.4-1~bpo13+1")
    assert "V4" in plan.images(xfs("trixie"))["ext4", "new", "ram"].features
    with pytest.raises(UserError, match="no XFS format is common to kernels 'old' and 'new'"):
        plan.images(xfs("sid"))
    # It has XFS_SUPPORT_V4 (changelog.Debian of linux 7.3.4-1~bpo13+1).
    assert "V4" in plan.images(xfs("trixie-backports"))["ext4", "new", "ram"].features


def test_an_image_is_found_by_the_name_from_before_a_kernel_was_pinned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config_ = study(
        kernels={"debian-6.1": {"debian": {"suite": "trixie-backports"}}},
        filesystems__ext4={"type": "xfs", "format": "era"},
        maker={"userland": {"suite": "bookworm"}},
    )
    before = key_of(config_)
    pin("trixie-backports", "linux-binary-5.4.1", "5.4.1-1")  # anything that has another era's options
    assert key_of(config_) != before
    assert plan.image(config_, before).key == before
    assert plan.image(config_, key_of(config_)).key == key_of(config_)
    with pytest.raises(UserError, match="needs no image xfs-0"):
        plan.image(config_, "xfs-0")


def key_of(config_):
    return plan.image_key(config_, "ext4", "debian-6.1")


def test_each_type_has_its_userland():
    assert plan.userlands(study()) == {"btrfs-progs+e2fsprogs": ("btrfs-progs", "e2fsprogs")}
    assert plan.userlands(study(filesystems__ext4={"type": "xfs"})) == {"xfsprogs": ("xfsprogs",)}
    own = {"userland": {"packages": ["xfsprogs", "e2fsprogs"]}}
    assert plan.userlands(study(maker=own)) == {"e2fsprogs+xfsprogs": ("e2fsprogs", "xfsprogs")}


def test_runs_have_a_userland_where_their_workload_runs_programs():
    commands = {"name": "commands", "packages": ["dpkg", "coreutils"], "debs": ["hello"], "commands": ["true"]}
    config_ = study(**{"experiments__create-unlink__workload": commands})
    needed = plan.guest_userlands(config_)
    names = ("coreutils", "deb:hello", "dpkg")
    assert set(needed.values()) == {plan.userland_key(names)}
    assert plan.userlands(config_)[plan.userland_key(names)] == names
    assert plan.guest_userlands(study()) == {}


@pytest.mark.parametrize(
    "words",
    [
        "{folder}",
        "{folder}/",
        "./{folder}",
        "results/{folder}",
        "results/{folder}/run.json",
        "{here}/results/{folder}/console.log",
    ],
)
def test_a_run_is_found_by_each_of_its_paths(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = next(plan.runs(study()))
    assert plan.run(study(), words.format(folder=one.folder, here=tmp_path)) == one


@pytest.mark.parametrize("words", ["runs", "runs/create-unlink", "other/runs/create-unlink/debian-6.1,ext4/1", "", "/"])
def test_what_names_no_run(words):
    with pytest.raises(UserError, match="`fsexp plan` lists them"):
        plan.run(study(), words)


def test_unknown_run():
    with pytest.raises(UserError, match="no run runs/x"):
        plan.run(study(), "runs/x")


DISKS = {"hdd": {"model": "hdd"}, "big": {"model": "ram", "mib": 2048}, "two": {"devices": [{"model": "ram"}] * 2}}
SEVERAL = {
    "disks": DISKS,
    "experiments__create-unlink__filesystems": ["btrfs"],
    "experiments__create-unlink__disks": ["ram", *DISKS],
    "experiments__create-unlink__seeds": [1],
}
VARIANTS = {"few": {"nfiles": 5}, "as it is": {}}


def test_disks_and_variants_are_factors():
    crossed = study(**SEVERAL | {"experiments__create-unlink__variants": VARIANTS})
    assert [(one.disk, one.variant) for one in plan.runs(crossed)][:3] == [
        ("ram", "few"),
        ("ram", "as it is"),
        ("hdd", "few"),
    ]
    first, second = list(plan.runs(crossed))[:2]
    assert first.folder == "runs/create-unlink/debian-6.1,btrfs,ram,few/1"
    # The label is no plain folder's name: six digits of SHA-256 over its JSON, by sha256sum.
    assert second.folder == "runs/create-unlink/debian-6.1,btrfs,ram,as-it-is~66b1f9/1"
    assert first.levels == {"kernel": "debian-6.1", "filesystem": "btrfs", "disk": "ram", "variant": "few"}
    assert second.label == "debian-6.1, btrfs, ram, as it is"


def test_a_folder_names_a_disk_only_where_it_is_another_than_ram():
    assert [one.folder.split("/")[2] for one in plan.runs(study(**SEVERAL))] == [
        "debian-6.1,btrfs",
        "debian-6.1,btrfs,hdd",
        "debian-6.1,btrfs,big",
        "debian-6.1,btrfs,two",
    ]


def test_a_variant_changes_the_workloads_parameters():
    experiment = study(**{"experiments__create-unlink__variants": VARIANTS}).experiments["create-unlink"]
    assert plan.workload_of(experiment, "few")[1].nfiles == 5
    assert plan.workload_of(experiment, "as it is")[1].nfiles == 10
    # A variant that changes nothing shares the stream of an experiment without any.
    plain = study().experiments["create-unlink"]
    assert plan.ops_key(experiment, "as it is") == plan.ops_key(plain) != plan.ops_key(experiment, "few")


def test_an_image_goes_by_the_sizes_of_its_devices():
    made = plan.images(study(**SEVERAL))
    of = {disk: made["btrfs", "debian-6.1", disk] for disk in ("ram", *DISKS)}
    assert of["ram"] is of["hdd"]  # whatever answers, the same bytes
    assert of["ram"].disks_mib == (1024,)
    assert of["big"].disks_mib == (2048,)
    assert of["two"].disks_mib == (1024, 1024)
    assert len({image.key for image in of.values()}) == 3
    assert of["ram"].key == plan.image_key(study(), "btrfs", "debian-6.1")
    assert of["two"].key == plan.image_key(study(**SEVERAL), "btrfs", "debian-6.1", "two")


@pytest.mark.parametrize("factor", ["disk", "variant"])
def test_what_differs_in_disk_or_variant_is_another_run(factor):
    several = study(**SEVERAL | {"experiments__create-unlink__variants": VARIANTS})
    first, *others = plan.runs(several)
    other = next(one for one in others if getattr(one, factor) != getattr(first, factor))
    assert plan.fingerprint(several, first) != plan.fingerprint(several, other)


def test_the_plan_says_each_variants_parameters_and_phases():
    several = study(**SEVERAL | {"experiments__create-unlink__variants": VARIANTS})
    described = plan.describe(several)["experiments"]["create-unlink"]
    assert described["factors"]["disk"] == ["ram", "hdd", "big", "two"]
    assert described["factors"]["variant"] == ["few", "as it is"]
    assert described["variants"]["few"] == {"parameters": {"nfiles": 5}, "phases": ["create", "delete"]}
    assert described["variants"]["as it is"]["parameters"] == {"nfiles": 10}
    disks = plan.describe(several)["disks"]
    assert list(disks) == ["ram", "hdd", "big", "two"]
    none = {"name": None, "latency_us": None, "queue_depth": None, "mib": None}
    assert disks["ram"] == {"bcache": None, "devices": [none | {"model": "ram"}]}
    assert disks["big"]["devices"] == [none | {"model": "ram", "mib": 2048}]
    assert [device["model"] for device in disks["two"]["devices"]] == ["ram", "ram"]
    assert disks["hdd"]["devices"][0]["latency_us"] >= 1000  # the model's own figure
    plain = plan.describe(study())["experiments"]["create-unlink"]
    assert list(plain["variants"]) == [""]


def test_a_workload_that_runs_programs_needs_their_packages(monkeypatch):
    # Only the variant with five files runs any.
    monkeypatch.setattr(
        create_unlink, "packages", lambda given: ("fio", "coreutils") if given.nfiles == 5 else (), raising=False
    )
    crossed = study(**{"experiments__create-unlink__variants": VARIANTS})
    assert plan.guest_userlands(crossed) == {("create-unlink", "few"): "coreutils+fio"}
    assert plan.userlands(crossed) == {
        "btrfs-progs+e2fsprogs": ("btrfs-progs", "e2fsprogs"),
        "coreutils+fio": ("coreutils", "fio"),
    }
    other = study(**{"experiments__create-unlink__variants": VARIANTS}, maker={"userland": {"suite": "trixie"}})
    prints = {one.variant: (plan.fingerprint(crossed, one), plan.fingerprint(other, one)) for one in plan.runs(other)}
    assert prints["few"][0] != prints["few"][1]
    assert prints["as it is"][0] == prints["as it is"][1]


def test_each_kind_of_device_is_calibrated_once_a_kernel():
    given = {
        "hdd": {"model": "hdd"},
        "slower": {"model": "hdd", "latency_us": 20000},
        "both": {"devices": [{"model": "ssd", "mib": 512}, {"model": "hdd", "mib": 512}]},
        "again": {"devices": [{"model": "hdd", "mib": 512}, {"model": "hdd", "mib": 256}]},
    }
    config_ = study(
        disks=given,
        **{
            "experiments__create-unlink__disks": ["ram", "both", "again", "slower", "hdd"],
            "experiments__create-unlink__filesystems": ["btrfs"],
        },
    )
    kernels = config_.experiments["create-unlink"].kernels
    found = plan.calibrations(config_)
    assert sorted(found) == sorted((kernel, disk) for kernel in kernels for disk in ("hdd", "slower", "both"))
