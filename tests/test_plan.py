"""The plan: folders, and what a change of the configuration changes."""

import copy
import re

import pytest
from test_config import GOOD

from fsexp import config, plan
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


def test_mount_options_do_not_change_the_image():
    assert plan.image_key(study(filesystems__ext4={"type": "ext4", "mount": "noatime"}), "ext4") == plan.image_key(
        study(), "ext4"
    )
    assert plan.image_key(study(filesystems__ext4={"type": "ext4", "disk_mib": 512}), "ext4") != plan.image_key(
        study(), "ext4"
    )


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
