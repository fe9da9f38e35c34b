"""Disks: what a guest is told for each model on each kernel, and what the kernels can't do. Nothing boots."""

import pytest

from fsexp import config, disk

MIB = 2**20


def facts(version, hz=1000):
    return disk.Facts(version, tuple(map(int, version.split("."))), hz)


def layout(disk_mib=256, **keys):
    return disk.layout(config.Disk(**keys), disk_mib)


def text(told):
    """The directives of all steps, as the guest's set-up file has them."""
    return [" ".join(fields) for fields in (*told.make, *told.slow, *told.join)]


def null_blk(name, size_mib, *values, rotational):
    folder = f"/sys/kernel/config/nullb/{name}"
    return [
        f"mkdir {folder}",
        f"write {folder}/size {size_mib}",
        f"write {folder}/memory_backed 1",
        f"write {folder}/irqmode 2",
        *(f"write {folder}/{value}" for value in values),
        f"write {folder}/power 1",
        f"disk /dev/{name} {size_mib * MIB}",
        f"write /sys/block/{name}/queue/rotational {rotational}",
    ]


def test_ram_is_what_it_was():
    told = disk.setup(disk.ram(256), facts("2.6.39.4"))
    assert told.modules == {"brd": "rd_nr=1 rd_size=262144 max_part=0"}
    assert told.arguments == ["brd.rd_nr=1", "brd.rd_size=262144"]
    assert text(told) == ["disk /dev/ram0 268435456"]
    assert (told.mounted, told.options, disk.ram(256).memory_mib) == ("/dev/ram0", "", 0)


# What each value means: Documentation/block/null_blk.rst and drivers/scsi/scsi_debug.c of the kernels named.
HDD_NULL = ("completion_nsec 8000000", "hw_queue_depth 1", "submit_queues 1", "max_sectors 1024")
SSD_NULL = ("completion_nsec 100000", "hw_queue_depth 32", "submit_queues 1", "mbps 500", "max_sectors 1024")


@pytest.mark.parametrize("version", ["5.11", "6.1.0", "7.3.4"])
def test_hdd_by_null_blk(version):
    told = disk.setup(layout(model="hdd"), facts(version, hz=250))
    assert told.modules == {"null_blk": "nr_devices=0"}
    assert text(told) == [
        "filesystem configfs /sys/kernel/config",
        *null_blk("nullb0", 256, *HDD_NULL, rotational=1),
    ]
    assert (told.arguments, told.slow, told.mounted) == ([], [], "/dev/nullb0")


@pytest.mark.parametrize(
    ("version", "hz", "parameters", "delay"),
    [
        ("2.6.39.4", 1000, "delay=0 opts=0", "delay 8"),
        ("3.2.7", 250, "delay=0 opts=0", "delay 2"),
        ("3.16", 1000, "delay=0 opts=0", "delay 8"),
        ("3.17", None, "delay=0 opts=4096", "ndelay 8000000"),
        ("5.10.0", 250, "delay=0 opts=4096", "ndelay 8000000"),
    ],
)
def test_hdd_by_scsi_debug(version, hz, parameters, delay):
    told = disk.setup(layout(model="hdd"), facts(version, hz))
    assert told.modules == {"scsi_debug": f"dev_size_mb=256 add_host=1 max_queue=1 {parameters}", "sd_mod": ""}
    assert text(told) == [
        "disk /dev/sda 268435456",
        "write /sys/block/sda/queue/rotational 1",
        "write /sys/block/sda/queue/max_sectors_kb 512",
        f"write /sys/bus/pseudo/drivers/scsi_debug/{delay}",
    ]
    assert [word for word in told.arguments if "dev_size_mb" in word] == ["scsi_debug.dev_size_mb=256"]


def test_the_latency_comes_after_the_images():
    assert [fields[0] for fields in disk.setup(layout(model="hdd"), facts("5.10")).slow] == ["write"]


@pytest.mark.parametrize(("version", "values"), [("4.14", SSD_NULL[:-1]), ("5.10.1", SSD_NULL[:-1]), ("6.1", SSD_NULL)])
def test_ssd(version, values):
    told = disk.setup(layout(model="ssd"), facts(version))
    assert text(told)[1:] == null_blk("nullb0", 256, *values, rotational=0)


def test_own_figures():
    told = text(disk.setup(layout(model="hdd", latency_us=12_000, queue_depth=4, mib=128), facts("6.1")))
    assert "write /sys/kernel/config/nullb/nullb0/completion_nsec 12000000" in told
    assert "write /sys/kernel/config/nullb/nullb0/hw_queue_depth 4" in told
    assert "disk /dev/nullb0 134217728" in told


HDD, SSD = {"model": "hdd"}, {"model": "ssd", "mib": 512}


@pytest.mark.parametrize(
    ("version", "nodes"), [("5.10", ["/dev/sda", "/dev/nullb0"]), ("6.1", ["/dev/nullb0", "/dev/nullb1"])]
)  # fmt: skip
def test_several_devices(version, nodes):
    wanted = layout(devices=[HDD, SSD])
    told = disk.setup(wanted, facts(version))
    assert told.nodes == nodes
    assert told.mounted == nodes[0]
    assert told.options == f"device={nodes[0]},device={nodes[1]}"
    awaited = [fields for fields in told.make if fields[0] == "disk"]
    assert sorted(awaited) == sorted([("disk", nodes[0], str(256 * MIB)), ("disk", nodes[1], str(512 * MIB))])
    assert wanted.memory_mib == 768


def test_devices_of_one_driver_are_numbered_in_their_order():
    told = disk.setup(layout(devices=[SSD, {"model": "ram"}, HDD, {"model": "ram"}]), facts("6.1"))
    assert told.nodes == ["/dev/nullb0", "/dev/ram0", "/dev/nullb1", "/dev/ram1"]
    assert told.modules["brd"] == "rd_nr=2 rd_size=262144 max_part=0"
    assert "write /sys/kernel/config/nullb/nullb1/completion_nsec 8000000" in text(told)


def test_bcache():
    wanted = layout(bcache="writeback", backing=HDD, cache=SSD)
    told = disk.setup(wanted, facts("6.1"))
    assert [device.mib for device in wanted.devices] == [257, 512]
    assert told.join_modules == ("bcache",)
    assert [" ".join(fields) for fields in told.join] == [
        "write /sys/fs/bcache/register /dev/nullb1",
        "write /sys/fs/bcache/register /dev/nullb0",
        "wait /sys/block/bcache0/bcache/cache",
        "disk /dev/bcache0 268435456",
    ]
    assert (told.mounted, told.options) == ("/dev/bcache0", "")


RAM2 = {"model": "ram", "mib": 512}


@pytest.mark.parametrize(
    ("keys", "version", "hz", "said"),
    [
        (SSD, "4.13.16", 250, "the disk model ssd is made by null_blk, which can since Linux 4.14 "),
        (SSD, "3.2.7", 1000, "and this is 3.2.7"),
        (HDD, "3.2.7", 100, r"8000 us is no whole number of ticks, .*\(10000 us in 3.2.7\)"),
        (HDD | {"latency_us": 500}, "2.6.39.4", 1000, "500 us is no whole number of ticks, and before Linux 3.17 "),
        (HDD, "3.2.7", None, "no CONFIG_HZ"),
        (HDD | {"latency_us": 1_000_000}, "5.10", 250, "more than scsi_debug's second"),
        (HDD | {"queue_depth": 256}, "5.10", 250, "more than scsi_debug's 255"),
        ({"devices": [HDD, HDD]}, "5.10", 250, "2 devices of model hdd need Linux 5.11"),
        ({"bcache": "none", "backing": {"model": "ram"}, "cache": RAM2}, "3.9.11", 250, r"bcache .* since Linux 3.10"),
    ],
)
def test_what_a_kernel_can_not(keys, version, hz, said):
    with pytest.raises(disk.Unsupported, match=said):
        disk.setup(layout(**keys), facts(version, hz))


def test_ticks_of_a_configuration():
    assert disk.hz("CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_SCHED_HRTICK=y\n") == 250
    assert disk.hz("# CONFIG_HZ_100 is not set\nCONFIG_NO_HZ=y\n") is None
    assert disk.hz(None) is None


def test_what_one_reader_gets():
    # 512 KiB in 8 ms; a latency that allows more than the limit; one that does not: 512 KiB in 2 ms.
    assert layout(model="hdd").devices[0].mib_per_s == 62.5
    assert layout(model="ssd").devices[0].mib_per_s == 500
    assert layout(model="ssd", latency_us=2000).devices[0].mib_per_s == 250
    assert disk.ram(64).devices[0].mib_per_s is None


def test_too_many_devices():
    assert disk.problem(config.Disk(devices=[HDD] * 17)) == "it has 17 devices, and 16 is the most"
    assert disk.problem(config.Disk(devices=[HDD] * 16)) is None


def test_the_command_line_has_room_for_the_longest():
    assert disk.arguments(layout(devices=[HDD, SSD]))[0] == "scsi_debug.dev_size_mb=256"
    assert disk.arguments(disk.ram(1)) == ["brd.rd_nr=1", "brd.rd_size=1024"]
