"""The session's processes, without a guest."""

import os
import shutil
import time
from pathlib import Path

from fsexp.vm import session


def ended(pid):
    for _ in range(500):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def test_a_probe_that_ended_is_reaped(tmp_path):
    """Libvirt waits 40 s for each that stays a zombie; a run had two of them, and took 90 s instead of 13."""
    program = tmp_path / "qemu-system-x86_64"
    shutil.copyfile("/bin/true", program)
    program.chmod(0o755)
    pid = os.posix_spawn(program, [str(program)], os.environ)
    with session.reaping():
        assert ended(pid)


def test_other_children_are_left_to_those_who_started_them():
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], os.environ)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
        time.sleep(0.02)
    assert session._dead_guests() == []
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_the_driver_is_opened_on_one_cpu():
    """CPUID's leaf 0x1f is another on each: capabilities that one kept would not do for the next."""
    before = os.sched_getaffinity(0)
    with session._on_one_cpu():
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before
