"""Break the guest on purpose, to see that the outcome is told from the console and the records.

Not a measurement: it proves on this machine, with this kernel, that a crash, a hang or a damaged stream of
records is shown as what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op

VERIFIED = False  # a fault leaves what it leaves


class Parameters(BaseModel):
    """Parameters of fault."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="fault")

    kind: Literal[
        "crash", "exit", "spin", "silence", "power-off", "garble", "repeat", "skip", "no-such-file", "exists"
    ] = Field(description="what goes wrong, in the middle of the second of two phases")


# Kinds that are ordinary operations on a filesystem which must fail, not faults of the core.
_CALLS = {
    "no-such-file": lambda: op.unlink("no/such/file"),
    "exists": lambda: op.mkdir("before", 0o755),
}


def phases(_: Parameters) -> list[str]:
    """One phase that ends well, one that does not."""
    return ["before", "during"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """A phase that is measured, then the fault."""
    yield op.phase("before")
    yield op.mkdir("before", 0o755)
    yield op.phase_end()
    yield op.phase("during")
    yield _CALLS.get(parameters.kind, lambda: op.fault(parameters.kind))()
    yield op.phase_end()
