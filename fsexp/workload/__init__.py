"""Workloads: what is done to a filesystem, as a generator of operations with named parameters.

A workload is a module of this package with
`Parameters` (a pydantic model: unit, default at demonstration scale and the published scale in each description),
`phases(parameters)` (the names of its timed phases, in order) and
`ops(parameters)` (an iterator of encoded operations, see `fsexp.ops`).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import BaseModel

# Configuration's name -> module. A table, so that a study can be checked without importing them all.
_MODULES = {"create-unlink": "create_unlink", "fault": "fault"}

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


def ops(name: str, given: BaseModel) -> Iterator[bytes]:
    """The workload's operations, encoded."""
    return _module(name).ops(given)
