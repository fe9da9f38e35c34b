"""The two kinds of error that reach a person."""


class UserError(Exception):
    """Something the user can mend: configuration, a missing file. One sentence, shown without a traceback."""


class MachineError(Exception):
    """The machine failed: QEMU died, the disk is full. Says what happened and where the log is."""


class KernelRefused(MachineError):
    """QEMU does not take the kernel's file: a finding about that kernel, and the outcome of its cells."""

    outcome = "no-boot"


class BuildFailed(UserError):
    """A kernel's source does not build: a finding about that kernel, and the outcome of its cells."""

    outcome = "build-failed"
