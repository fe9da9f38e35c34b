"""Workloads: what is done to a filesystem, as a generator of operations with named parameters.

A workload is a module of this package with
`Parameters` (a pydantic model: unit, default at demonstration scale and the published scale in each description),
`phases(parameters)` (the names of its timed phases, in order),
`ops(parameters)` (an iterator of encoded operations, see `fsexp.ops`) and, where it runs programs,
`packages(parameters)` (the Debian packages that they come from).
One whose operations do not tell what they leave has `VERIFIED = False`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from fsexp import ops as encoding

# Where the manifest lies in a guest.
MANIFEST = "/fsexp/manifest"

# Configuration's name -> module. A table, so that a study can be checked without importing them all.
_MODULES = {
    "create-unlink": "create_unlink",
    "inline-small-files": "inline_small_files",
    "tree": "tree",
    "tree-walk": "tree_walk",
    "package-upgrade": "package_upgrade",
    "commands": "commands",
    "fault": "fault",
}

NAMES = tuple(_MODULES)


def _module(name: str) -> ModuleType:
    return import_module(f"fsexp.workload.{_MODULES[name]}")


def model(name: str) -> type[BaseModel]:
    """The model of a workload's parameters; its title is the workload's name."""
    return _module(name).Parameters


def parameters(name: str, given: dict[str, Any]) -> BaseModel:
    """The parameters `given`, the defaults filled in. Raises pydantic.ValidationError."""
    return model(name).model_validate(given)


def phases(name: str, given: BaseModel) -> list[str]:
    """The names of the workload's timed phases, in order."""
    return _module(name).phases(given)


def packages(name: str, given: BaseModel) -> tuple[str, ...]:
    """The Debian packages that the workload's programs come from; none where the core does all."""
    own = getattr(_module(name), "packages", None)
    return tuple(own(given)) if own else ()


def ops(name: str, given: BaseModel) -> Iterator[bytes]:
    """The workload's operations, encoded."""
    return _module(name).ops(given)


def verified(name: str) -> bool:
    """Whether what the workload leaves is read back and compared."""
    return getattr(_module(name), "VERIFIED", True)


def write(name: str, given: BaseModel, path: Path) -> None:
    """Write the workload's stream to `path`; it ends with the comparison of what is left with what must be."""
    # Mounted anew before it is read: what only memory has would be found in any case.
    end = (encoding.remount(), encoding.verify(MANIFEST)) if verified(name) else ()
    encoding.write(path, chain(ops(name, given), end))
