"""The machine's description: what stands in the XML, and what the kernel is told."""

import uuid
import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_config import GOOD

from fsexp import config, run
from fsexp.errors import MachineError, UserError
from fsexp.vm import domain

SETTINGS = config.Machine().model_dump()
NASTY = "/tmp/a & b <c> \"d\" 'e' Ж ü%_/"


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    found = {"path": f"{NASTY}qemu", "version": "QEMU emulator version 1.2.3", "firmware": {"pvh.bin": "0" * 64}}
    monkeypatch.setattr(domain, "emulator", lambda: found)


def render(**changes):
    values = {
        "name": "fsexp",
        "uuid": domain.seed_uuid(1),
        "machine": domain.machine(SETTINGS),
        "kernel": Path(NASTY, "image"),
        "initramfs": Path(NASTY, "initramfs"),
        "command_line": "console=ttyS0 a=\"<&>'",
        "console": Path(NASTY, "console.log"),
        "records": Path(NASTY, "records.jsonl"),
        "export": None,
    }
    return domain.render(**values | changes)


def test_markup_in_paths_arrives_as_it_is():
    root = ElementTree.fromstring(render(export=Path(NASTY, "export")))
    assert root.findtext("os/kernel") == f"{NASTY}image"
    assert root.findtext("os/initrd") == f"{NASTY}initramfs"
    assert root.findtext("os/cmdline") == "console=ttyS0 a=\"<&>'"
    assert root.findtext("devices/emulator") == f"{NASTY}qemu"
    paths = {port.find("target").get("port"): port.find("source").get("path") for port in root.iter("serial")
             if port.find("source") is not None}  # fmt: skip
    assert paths == {"0": f"{NASTY}console.log", "1": f"{NASTY}records.jsonl"}
    assert root.find("devices/disk/source").get("file") == f"{NASTY}export"


def test_a_disk_only_where_something_is_exported():
    assert ElementTree.fromstring(render()).find("devices/disk") is None


def test_what_the_digits_depend_on():
    root = ElementTree.fromstring(render(machine=domain.machine(SETTINGS | {"shift": 3, "memory_mib": 768})))
    assert root.get("type") == "qemu"
    assert root.findtext("memory") == "768"
    assert root.find("memory").get("unit") == "MiB"
    assert root.findtext("vcpu") == "1"
    assert root.find("os/type").get("machine") == SETTINGS["type"]
    assert root.findtext("cpu/model") == SETTINGS["cpu"]
    assert root.find("clock").get("start") == str(SETTINGS["epoch_s"])
    assert root.find("clock/timer[@name='rtc']").get("track") == "guest"
    assert {root.findtext(f"on_{event}") for event in ("poweroff", "reboot", "crash")} == {"destroy"}
    name = "{http://libvirt.org/schemas/domain/qemu/1.0}"
    extra = [argument.get("value") for argument in root.iter(f"{name}arg")]
    assert extra == ["-icount", "shift=3,sleep=off"]


def test_same_input_same_bytes():
    assert render() == render()


def test_seeds():
    made = [domain.seed_uuid(seed) for seed in range(100)]
    assert len(set(made)) == 100
    assert all(str(uuid.UUID(text)) == text for text in made)
    assert domain.seed_uuid(7) == made[7]


def test_machine_is_all_that_identity_needs():
    machine = domain.machine(SETTINGS)
    assert machine["qemu"] == "QEMU emulator version 1.2.3"
    assert machine["firmware"] == {"pvh.bin": "0" * 64}
    assert SETTINGS.items() <= machine.items()
    # Where QEMU is installed plays no part.
    assert NASTY not in str(machine)


def test_command_line():
    words = domain.command_line(SETTINGS, ["brd.rd_nr=1", "brd.rd_size=262144"]).split()
    for word in ("console=ttyS0", "rdinit=/init", "nokaslr", "panic=-1", "brd.rd_nr=1", "brd.rd_size=262144"):
        assert words.count(word) == 1
    assert not [word for word in words if word.startswith(("root=", "init=", "quiet"))]


def test_own_kernel_arguments_come_last():
    settings = SETTINGS | {"kernel_arguments": "  nokaslr=x   loglevel=7 "}
    plain = domain.command_line(SETTINGS, ["x.y=1"])
    assert domain.command_line(settings, ["x.y=1"]) == plain + " nokaslr=x loglevel=7"


HELP = {
    "machine": "Supported machines are:\npc                   Standard PC (alias of pc-i440fx-7.2)\n"
    "pc-i440fx-7.2        Standard PC (i440FX + PIIX, 1996) (default)\nq35  Standard PC (alias of pc-q35-7.2)\n"
    "pc-q35-7.2           Standard PC (Q35 + ICH9, 2009)\n",
    "cpu": "Available CPUs:\nx86 486                   (alias configured by machine type)\n"
    "x86 Nehalem               (alias of Nehalem-v1)\n\nRecognized CPUID flags:\n  3dnow 3dnowext\n",
}


@pytest.fixture
def helpful(tmp_path, monkeypatch):
    """A QEMU that lists what Debian 12's does, in part."""
    program = tmp_path / "qemu"
    cases = "".join(f"-{what}) cat '{tmp_path / what}' ;;\n" for what in HELP)
    for what, text in HELP.items():
        (tmp_path / what).write_text(text)
    program.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n')
    program.chmod(0o755)
    found = {"path": str(program), "version": "QEMU emulator version 7.2.22", "firmware": {}}
    monkeypatch.setattr(domain, "emulator", lambda: found)


def test_a_machine_that_qemu_has(helpful):
    domain.check(SETTINGS)
    domain.check(SETTINGS | {"type": "pc-q35-7.2", "cpu": "486"})


@pytest.mark.parametrize(
    ("key", "value", "has"),
    [
        ("type", "pc-i440fx-9.9", "it has pc-i440fx-7.2 and others"),
        ("type", "pc-i440fx", "it has pc-i440fx-7.2"),
        ("cpu", "Nehalen", "it has Nehalem and others"),
        ("cpu", "3dnow", "it has 486, Nehalem and others"),
        ("cpu", "Supported", "it has 486, Nehalem and others"),
    ],
)
def test_a_machine_that_qemu_lacks(helpful, key, value, has):
    with pytest.raises(UserError) as caught:
        domain.check(SETTINGS | {key: value})
    said = str(caught.value)
    assert said.startswith(f"machine.{key}: QEMU emulator version 7.2.22 has no {value}; {has}")


def test_a_boot_that_fails_for_it_says_so(helpful, tmp_path, monkeypatch):
    @contextmanager
    def session(_):
        yield SimpleNamespace(root=tmp_path)

    def refuse(*_):
        raise MachineError("libvirt does not take the guest's description")

    monkeypatch.setattr("fsexp.vm.session.Session", session)
    monkeypatch.setattr("fsexp.vm.runner.boot", refuse)
    for settings, error in ((SETTINGS, MachineError), (SETTINGS | {"type": "pc-i440fx-9.9"}, UserError)):
        booting = run.Booting(SimpleNamespace(image=tmp_path), b"", "", settings, domain.seed_uuid(1))
        with pytest.raises(error):
            run.start(config.validate(GOOD), booting)


def test_no_emulator(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    domain.emulator.cache_clear()
    try:
        with pytest.raises(UserError, match="qemu-system-x86_64 is not installed"):
            domain.emulator()
    finally:
        domain.emulator.cache_clear()
