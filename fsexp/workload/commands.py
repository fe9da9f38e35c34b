"""Run programs of Debian in the guest, on the filesystem under test.

Each command is a phase, timed from fork to the end of wait. The programs are those of `packages`, unpacked into the
guest's memory: reading them costs nothing of the disk. A command that ends with another status than 0 ends the run.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fsexp import display, userland, workload
from fsexp import ops as op

VERIFIED = False  # what programs leave is not told by the operations

_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
# Stands for the packages of `debs`, as a shell would take it: there is none.
DEBS = "/fsexp/debs/*.deb"
# What begins and ends a phase, as the first byte of an encoded operation.
_PHASES = (op.phase("x")[:1], op.phase_end()[:1])


def _words(value: Any) -> Any:
    """The words of a command that is written as a line."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"can't be split into words: {str(error).lower()}") from None


def _inside(value: str) -> str:
    if value.startswith("/") or ".." in value.split("/"):
        raise ValueError(f"must lie in the filesystem under test, named from its top (it is {value!r})")
    return value


def _encodable(values: list[str]) -> list[str]:
    if not values[0]:
        raise ValueError("the program's name is empty")
    op.command(values)  # says what a stream can't hold
    return values


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a variable")
    return name


def _package(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name):  # Debian's policy, section 5.6.1
        raise ValueError(f"{name!r} is no name of a Debian package")
    return name


Directory = Annotated[str, Field(min_length=1), AfterValidator(_inside)]
Environment = dict[Annotated[str, AfterValidator(_variable)], str]
Packages = list[Annotated[str, AfterValidator(_package)]]


def _whole(value: Any) -> Any:
    """A command that is no more than its line."""
    return {"argv": value} if isinstance(value, str) else value


def _shown(name: str) -> str:
    if not name.isprintable():
        raise ValueError("has a character that can't be shown")
    return name


class Step(BaseModel):
    """A command that is not timed."""

    model_config = _STRICT

    argv: Annotated[list[str], Field(min_length=1), BeforeValidator(_words), AfterValidator(_encodable)]
    directory: Directory | None = None
    environment: Environment = {}


class Command(Step):
    """A command; `phase` is by default the program's name."""

    phase: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_shown)] | None = None
    cold: bool = False


Steps = list[Annotated[Step, BeforeValidator(_whole)]]
Commands = list[Annotated[Command, BeforeValidator(_whole)]]


def _prepared(value: dict[str, Any]) -> dict[str, Any]:
    """The workload of operations with its parameters, checked."""
    given = dict(value)
    name = given.pop("name", None)
    known = [one for one in workload.NAMES if one not in ("commands", "fault")]
    if name not in known:
        raise ValueError(f"its 'name' must be one of {', '.join(known)}")
    try:
        workload.parameters(name, given)
    except ValidationError as error:
        raise ValueError("it does not suit its workload") from error
    return value


class Parameters(BaseModel):
    """Parameters of commands."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="commands")

    commands: Commands = Field(min_length=1, description="the commands, a phase each")
    packages: Packages = Field(min_length=1, description="Debian packages that the programs come from")
    debs: Packages = Field(default=[], description=f"Debian packages that lie in the guest as files: {DEBS}")
    environment: Environment = Field(default={}, description="variables of every command")
    directory: Directory = Field(default=".", description="where they run, from the top of the filesystem")
    prepare: Annotated[dict[str, Any], AfterValidator(_prepared)] | None = Field(
        default=None, description="a workload of operations that comes before, untimed: its name and parameters"
    )
    before: Steps = Field(default=[], description="commands that come before, untimed, after `prepare`")

    @model_validator(mode="after")
    def _has_debs(self) -> Parameters:
        if not self.debs and any(DEBS in one.argv for one in (*self.commands, *self.before)):
            raise ValueError(f"a command names {DEBS}, and there are no 'debs'")
        for one in (*self.commands, *self.before):
            _command(one, self)  # says what a stream can't hold: words, a directory, variables that are too long
        return self

    @cached_property
    def timed(self) -> dict[str, Command]:
        """Phase -> command: a name that comes again gets a number."""
        found: dict[str, Command] = {}
        for one in self.commands:
            name = one.phase or display.visible(posixpath.basename(one.argv[0]) or one.argv[0])[:200]
            number, unique = 1, name
            while unique in found:
                number += 1
                unique = f"{name}-{number}"
            found[unique] = one
        return found


def packages(parameters: Parameters) -> tuple[str, ...]:
    """The programs' packages, and those that are carried as files."""
    return (*parameters.packages, *map(userland.carried, parameters.debs))


def phases(parameters: Parameters) -> list[str]:
    """One for each command."""
    return list(parameters.timed)


def ops(parameters: Parameters) -> Iterator[bytes]:
    """What is prepared, without its phases, then each command in a phase."""
    if parameters.prepare:
        given = dict(parameters.prepare)
        name = given.pop("name")
        for operation in workload.ops(name, workload.parameters(name, given)):
            if operation[:1] not in _PHASES:
                yield operation
    if parameters.prepare and parameters.before:
        yield op.remount()  # goes to the top directory, wherever the operations went
    for one in parameters.before:
        yield _command(one, parameters)
    if parameters.prepare or parameters.before:
        yield op.remount()
    for phase, one in parameters.timed.items():
        if one.cold:
            yield op.remount()
        yield op.phase(phase)
        yield _command(one, parameters)
        yield op.phase_end()


def _command(one: Step, parameters: Parameters) -> bytes:
    argv: list[str] = []
    for word in one.argv:
        argv += map(userland.deb_path, sorted(set(parameters.debs))) if word == DEBS else [word]
    return op.command(argv, one.directory or parameters.directory, parameters.environment | one.environment)
