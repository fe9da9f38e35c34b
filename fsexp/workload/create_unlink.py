"""Create N empty files in one directory, then delete them in the same order.

The program of Miao Xie, "Poor creat/delete files performance", linux-btrfs, 18 August 2010: mkdir, chdir,
creat("0".."N-1", 0555) and close, unlink, chdir "..", rmdir. Only the two loops are timed. No sync, so that it
measures what the calls cost the processor, hardly the disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op


class Parameters(BaseModel):
    """Parameters of create-unlink."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="create-unlink")

    nfiles: int = Field(default=5000, ge=1, le=10_000_000, description="files; published: 50,000")


def phases(_: Parameters) -> list[str]:
    """The two loops of the program."""
    return ["create", "delete"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """The program's calls, in its order."""
    names = range(parameters.nfiles)
    yield op.mkdir("tst_dir", 0o775)
    yield op.chdir("tst_dir")
    yield op.phase("create")
    for name in names:
        yield op.create(str(name), 0o555)
    yield op.phase_end()
    yield op.phase("delete")
    for name in names:
        yield op.unlink(str(name))
    yield op.phase_end()
    yield op.chdir("..")
    yield op.rmdir("tst_dir")
