"""What selfcheck compares, without booting."""

import pytest
from test_config import with_disks

from fsexp import config, disk, run, selfcheck
from fsexp.errors import UserError


def study():
    data = with_disks({"slow": {"model": "hdd"}}, variants={"few": {"nfiles": 3}, "many": {}})
    data["experiments"]["create-unlink"]["disks"] = ["ram", "slow"]
    return config.validate(data)


def test_each_disk_is_compared_once_whatever_the_variants():
    cells = selfcheck.cells(selfcheck.study(study()))
    assert [(one.disk, one.variant, one.seed) for one in cells] == [("ram", "", 1), ("slow", "", 1)]


def test_a_disk_that_the_kernel_can_not_do_is_said(tmp_path, monkeypatch):
    def prepare(_config, one, _inputs):
        raise disk.Unsupported(f"no {one.disk} here")

    monkeypatch.setattr(run, "prepare", prepare)
    made = selfcheck.study(study())
    said = []
    with pytest.raises(UserError, match="nothing was compared"):
        selfcheck.check(made, selfcheck.cells(made), lambda one: None, said.append, tmp_path)
    assert said == [
        "debian-6.1, ext4: not compared: no ram here",
        "debian-6.1, ext4, slow: not compared: no slow here",
    ]
