"""The clocks a run can be timed by, and what a reader has to know about each."""

from dataclasses import dataclass

from fsexp.errors import UserError


@dataclass(frozen=True)
class Clock:
    """`unit` stands beside a figure, `noun` in a sentence; `heading` and `statement` explain."""

    unit: str
    noun: str
    heading: str
    statement: tuple[str, ...]


CLOCKS = {
    "virtual": Clock(
        unit="virtual s",
        noun="virtual seconds",
        heading="Times here are virtual: they count instructions",
        statement=(
            "The guest's clock advances by the same amount for each instruction it executes. "
            "The same inputs therefore give the same digits wherever QEMU and its firmware are the same.",
            "Instructions are not cycles. A loop that a real CPU runs at high speed weighs more "
            "here than it does on that CPU, and a cache miss costs nothing. These figures are "
            "not to be read as wall time.",
        ),
    ),
    "wall": Clock(
        unit="s",
        noun="seconds",
        heading="Times here are wall time in a virtual machine",
        statement=(
            "The guest's clock is real time. The figures depend on the machine and on what else "
            "it did, and differ from run to run.",
        ),
    ),
}


def clock(name: str) -> Clock:
    """The clock of that name. Raises UserError for another."""
    if name not in CLOCKS:
        raise UserError(f"The clock {name!r} is none of {', '.join(CLOCKS)}.")
    return CLOCKS[name]
