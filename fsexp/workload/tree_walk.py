"""Walk, copy and remove a tree of many directories, by imitations of programs: the commands of the mail on getdents.

Jacek Luczak, "getdents - ext4 vs btrfs performance", linux-ext4, 29 February 2012: `find . -type d`, `find . -type f`,
`cp -a`, `rm -rf`. The tree is that of the workload `tree`. Each command runs cold, on a filesystem that was mounted
anew with the caches dropped, and the two walks run once more, warm. `cp` and `rm` end with a sync inside the timer:
without it they would measure how fast memory takes the data. Real programs do the same with the workload `commands`
(docs/workloads.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op
from fsexp.workload import tree

# Era -> find, cp, rm as the core names them. 2012: find 4.4.2 stats every file, cp before 8.23 keeps the directory's
# order; "sorted": entries by inode number, the cure that the thread proposes.
PROGRAMS = {
    "2012": ("findutils-4.4.2", "coreutils-8.12", "coreutils-8.12"),
    "2012, sorted": ("findutils-4.4.2+sorted", "coreutils-8.12+sorted", "coreutils-8.12"),
    "today": ("findutils-4.9", "coreutils-9.1", "coreutils-9.1"),
    "today, sorted": ("findutils-4.9+sorted", "coreutils-9.1", "coreutils-9.1"),
}


class Parameters(BaseModel):
    """Parameters of tree-walk."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="tree-walk")

    directories: int = Field(
        default=900, ge=9, le=10_000_000, description="directories of the tree; published: 844,008"
    )
    programs: Literal["2012", "2012, sorted", "today", "today, sorted"] = Field(
        default="2012", description="whose find, cp and rm are imitated; published: not stated, of 2012"
    )


def phases(_: Parameters) -> list[str]:
    """The mail's four commands; the walks twice."""
    return ["find-dirs", "find-dirs-warm", "find-files", "find-files-warm", "cp", "rm"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """The tree, then each command."""
    find, cp, rm = PROGRAMS[parameters.programs]
    yield from tree.populate("workspace", parameters.directories)
    for name, kind in (("find-dirs", "d"), ("find-files", "f")):
        walk = op.walk(find, "workspace", kind)
        yield op.remount()
        for phase in (name, f"{name}-warm"):
            yield op.phase(phase)
            yield walk
            yield op.phase_end()
    for name, step in (("cp", op.copy(cp, "workspace", "copy")), ("rm", op.remove(rm, "workspace"))):
        yield op.remount()
        yield op.phase(name)
        yield step
        yield op.sync()
        yield op.phase_end()
