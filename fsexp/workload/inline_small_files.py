"""Write N small files, each opened for append, written once and closed: the script of the mails on btrfs's inlining.

cwillu, "Re: Why btrfs inline small file by default?", linux-btrfs, 31 October 2012: Python 2, `open(name, "a")`,
`write("1" * size)`, close, names "0".."N-1" in the top directory. No sync inside the timer, as published, unless
`synced` says so. `passes: 2` appends once more to files that are there: the 7 KiB row of the mail shows 20 KiB of data
a file, which is 8 KiB and a rewrite of 12 KiB (its blocks 1 to 3), so that it was most likely a second pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op
from fsexp.pattern import Pattern

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_MODE = 0o644  # 0666 under the usual umask


class Parameters(BaseModel):
    """Parameters of inline-small-files."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="inline-small-files")

    nfiles: int = Field(default=2000, ge=1, le=10_000_000, description="files; published: 100,000")
    size_bytes: int = Field(
        default=3072, ge=1, le=64 * 2**20, description="bytes written to each file; published: 3072, 7168, 32768"
    )
    synced: bool = Field(default=False, description="whether sync(2) is inside the timer; published: no")
    passes: int = Field(default=1, ge=1, le=10, description="how often each file is opened and appended to")


def phases(parameters: Parameters) -> list[str]:
    """A phase for each pass, and the sync unless it belongs to the last pass."""
    passes = ["write"] + [f"write-{number}" for number in range(2, parameters.passes + 1)]
    return passes if parameters.synced else [*passes, "sync"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """The script's calls, in its order."""
    names = phases(parameters)
    write = op.write_data(0, Pattern.ONES, 0, parameters.size_bytes)
    close = op.close(0)
    for number in range(parameters.passes):
        yield op.phase(names[number])
        for name in range(parameters.nfiles):
            yield op.open(0, str(name), _FLAGS, _MODE)
            yield write
            yield close
        if parameters.synced:
            yield op.sync()
        yield op.phase_end()
    if not parameters.synced:
        yield op.phase("sync")
        yield op.sync()
        yield op.phase_end()
