"""The plan: folders, and what a change of the configuration changes."""

import copy
import re
from pathlib import Path

import pytest
from test_config import GOOD

from fsexp import config, lock, plan
from fsexp.errors import UserError

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
    assert made["ext4", "wheezy"] == made["ext4", "jessie"] != made["ext4", "bookworm"]
    assert made["ext4", "bookworm"].key == key()
    assert made["ext4", "wheezy"].options == ("-O", "^64bit,uninit_bg,^metadata_csum")


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
    assert "V4" in plan.images(xfs("trixie"))["ext4", "new"].features
    with pytest.raises(UserError, match="no XFS format is common to kernels 'old' and 'new'"):
        plan.images(xfs("sid"))
    # It has XFS_SUPPORT_V4 (changelog.Debian of linux 7.3.4-1~bpo13+1).
    assert "V4" in plan.images(xfs("trixie-backports"))["ext4", "new"].features


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
