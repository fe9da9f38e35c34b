"""The study's configuration: what `config.yaml` may say, and the sentence that says what is wrong with it.

The models below are the only description of the format; `schema()` gives them as JSON Schema.
"""

from __future__ import annotations

import datetime
import difflib
import json
import os
import re
import unicodedata
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from fsexp import apt, digest, whole, workload
from fsexp import disk as disks
from fsexp.errors import UserError
from fsexp.image import formats
from fsexp.kernel import debian, ladder, source

__all__ = [
    "Config",
    "Device",
    "Disk",
    "Experiment",
    "Filesystem",
    "Kernel",
    "Machine",
    "load",
    "read",
    "resolve",
    "schema",
    "snapshot",
    "validate",
]


# More replicates than this are a slip of the finger: each is a boot.
SEEDS_MAX = 100_000
# What a kernel takes on x86, its NUL included (COMMAND_LINE_SIZE, arch/x86/include/asm/setup.h).
COMMAND_LINE_BYTES = 2048
# Deeper or larger than any study, and far from where Python's recursion ends.
_DEPTH_MAX = 50
_VALUES_MAX = 1_000_000


def _label(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a name such as on, off, yes, no, true, false is read as a truth value: write it in quotes")
    if isinstance(value, (int, float)):
        raise ValueError(f"the name {value} is read as a number by YAML: write it in quotes")
    if isinstance(value, datetime.date):
        raise ValueError(f"the name {value} is read as a date by YAML: write it in quotes")
    if value is None:
        raise ValueError("a name that is empty, null or ~ is read as no value: write it in quotes, or give one")
    if not isinstance(value, str):
        raise ValueError("a name must be text")
    if not value.strip():
        raise ValueError("a name must not be empty")
    if _breaks(value):
        raise ValueError(f"the name {shown(value)} has a line break or another control character")
    if len(value) > 200:
        raise ValueError(f"the name is {len(value)} characters long; 200 is the most")
    # Both Unicode forms of "é" are one name: two levels that look alike would be two rows of one label.
    return unicodedata.normalize("NFC", value)


Label = Annotated[str, BeforeValidator(_label)]


def _breaks(value: str) -> bool:
    """Whether the text has control characters, or others that end a line."""
    return any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in value)


def shown(value: object) -> str:
    """A value as JSON for a sentence of one line, characters that can't be seen as escapes."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _one_field(value: str) -> str:
    # The guest's set-up file separates fields by tabs and directives by line feeds.
    if _breaks(value):
        raise ValueError("must not contain tabs, line feeds or other control characters")
    return value


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _folder(value: str) -> str:
    _said(_one_field(value))
    if value.startswith("~"):
        raise ValueError(f"must be written out: '~' means nothing here (it is {shown(value)})")
    if set(value) & set("{}"):
        raise ValueError(f"must not have braces, by which Snakemake marks wildcards (it is {shown(value)})")
    # Everything in it is fsexp's: a folder that holds the checkout, or all there is, would be mixed with it.
    if _holds(value, str(Path.cwd())):
        raise ValueError(f"must be a folder of its own, not this one or one around it (it is {shown(value)})")
    return value


def _holds(folder: str, other: str) -> bool:
    """Whether `other` is the folder or lies below it."""
    paths = [os.path.realpath(path) for path in (folder, other)]
    return os.path.commonpath(paths) == paths[0]


Text = Annotated[str, AfterValidator(_one_field)]
# Text for people.
Said = Annotated[str, AfterValidator(_said)]
Folder = Annotated[str, AfterValidator(_folder)]
_PACKAGE = r"^[a-z0-9][a-z0-9+.-]+$"
_SUITE = r"^[a-z0-9][a-z0-9./-]*$"
# apt's ways to an archive that a URL can name: sources.list(5), apt-transport-mirror(1).
_MIRROR = (
    r"^((tor\+|mirror\+)?(https?|ftp)://[A-Za-z0-9][^\s/\"'\[\]]*(/[^\s\"'\[\]]*)?"
    r"|(mirror\+)?(file|copy):/[^\s\"'\[\]]*)$"
)
# With a version, since "pc" is another machine with each QEMU.
_MACHINE = r"^pc-(i440fx|q35)-[0-9]+(\.[0-9]+)+$"
_VERSION = r"^[0-9]+(\.[0-9]+)+$"
# The pattern of a text -> what it stands for, in words.
_FORMS = {
    _PACKAGE: "must be the name of a Debian package: small letters, digits, '+', '.' and '-'",
    _SUITE: "must be the name of a Debian suite, as bookworm or trixie-backports",
    _MIRROR: "must be the URL of a Debian mirror, as http://mirror.example.org/debian",
    _MACHINE: "must be one of QEMU's machine types with its version, as pc-i440fx-7.2",
    _VERSION: "must be a version of Linux in digits, as 6.1 or 2.6.39.4",
}
Package = Annotated[str, Field(pattern=_PACKAGE)]
Suite = Annotated[str, Field(pattern=_SUITE)]
Mirror = Annotated[str, Field(pattern=_MIRROR)]
MachineType = Annotated[str, Field(pattern=_MACHINE)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _release(value: object) -> object:
    # YAML reads 3.10 without quotes as the number 3.1.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f"{value} is read as a number by YAML: write it in quotes")
    return value


def _sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("must be a sha256: 64 hexadecimal digits")
    return value.lower()


def _program(value: str) -> str:
    # It becomes a word of make's CC, which make gives to a shell.
    if not re.fullmatch(r"[A-Za-z0-9/._+-]+", value):
        raise ValueError(
            f"must be a program's name, or a path of letters, digits and ._+-/ (it is {json.dumps(value)})"
        )
    return value


Sha256 = Annotated[str, AfterValidator(_sha256)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _day(value: object) -> object:
    # YAML reads 2024-01-31 without quotes as a date.
    return value.isoformat() if type(value) is date else value


def _moment(value: str) -> str:
    try:
        apt.timestamp(value)
    except UserError as error:
        raise ValueError(str(error)) from None
    return value


def _address_template(value: str) -> str:
    if "{timestamp}" not in value or re.search(r"[{}]", re.sub(r"\{(archive|timestamp)\}", "", value)):
        raise ValueError("must be an address with {timestamp} in it, and {archive} where the archives differ by that")
    return value


Moment = Annotated[str, BeforeValidator(_day, json_schema_input_type=str), AfterValidator(_moment)]
Version = Annotated[str, Field(pattern=_VERSION)]

# `from` is a word of Python's, so it can't stand in a class.
Ladder = create_model(
    "Ladder",
    __base__=_Strict,
    __doc__="The kernels of a suite from one version to another, both included.",
    **{"from": (Version, ...), "to": (Version, ...), "each": (Literal["release", "minor"], "release")},
)


class DebianSource(_Strict):
    """A kernel package of a Debian suite, or of the archive at a past moment, or a package of kernel source."""

    suite: Suite
    package: Package = "linux-image-amd64"
    snapshot: Moment | None = None
    build: bool = False
    ladder: Ladder | None = None

    @model_validator(mode="after")
    def _fits(self) -> DebianSource:
        packaged = re.match(r"linux-source(-|$)", self.package)
        if self.build and not packaged:
            raise ValueError(f"'build' needs a package of kernel source, as linux-source-6.1, not {self.package}")
        if packaged and not self.build:
            raise ValueError(f"{self.package} is kernel source: say 'build: true'")
        if self.ladder:
            first, last = getattr(self.ladder, "from"), self.ladder.to
            if not debian.ascends(first, last):
                raise ValueError(f"the ladder's 'from' ({first}) is above its 'to' ({last})")
            if not debian.FLAVOUR.fullmatch(self.package):
                raise ValueError(f"'ladder' needs the package of a flavour, as linux-image-amd64, not {self.package}")
        return self


class Patch(_Strict):
    """A patch file by address or path."""

    url: Text
    sha256: Sha256


class TarballSource(_Strict):
    """A kernel's source as a tarball: a release whose digests are shipped, or an address or path with its digest."""

    release: Annotated[Text, BeforeValidator(_release)] | None = None
    url: Text | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _named_once(self) -> TarballSource:
        if self.release and (self.url or self.sha256):
            raise ValueError("'release' names a tarball that is known here; with it, no 'url' and no 'sha256'")
        if not self.release and not (self.url and self.sha256):
            raise ValueError("'release' is needed, or 'url' and 'sha256'")
        problem = source.unknown_release(self.release) if self.release else ""
        if problem:
            raise ValueError(problem[0].lower() + problem[1:])
        return self


class TreeSource(_Strict):
    """A folder with a kernel's source. It is read and never written to."""

    path: Text


class GitSource(_Strict):
    """A commit of a git repository: a path or an address, and a hash, tag or branch."""

    repository: Text
    commit: Annotated[Text, BeforeValidator(_release)]


class ImageSource(_Strict):
    """A kernel that is built already: a bzImage, the folder of its modules, its configuration."""

    file: Text
    modules: Text | None = None
    config: Text | None = None


# Of the keys of an entry under `kernels`, those that say where it comes from, and those that say how it is built.
_SOURCES = ("debian", "tarball", "tree", "git", "image")
_RECIPE = ("patches", "fragments", "config", "compiler")


class Kernel(_Strict):
    """Where one kernel comes from: one source, and how it is built where it is source.

    config: a whole kernel configuration instead of the common one. fragments: options over either, in order.
    """

    debian: DebianSource | None = None
    tarball: TarballSource | None = None
    tree: TreeSource | None = None
    git: GitSource | None = None
    image: ImageSource | None = None
    patches: list[Patch] = []
    fragments: list[Text] = []
    config: Text | None = None
    compiler: Annotated[str, AfterValidator(_program)] = "gcc"

    @model_validator(mode="after")
    def _one_source(self) -> Kernel:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            said = f"'{given[0]}' and '{given[1]}'" if given else "none"
            raise ValueError(f"one source is needed, of {', '.join(_SOURCES)}; there is {said}")
        recipe = self._recipe()
        if recipe and not self.built:
            raise ValueError(f"'{recipe[0]}' is for kernels that are built from source, and this one is built already")
        return self

    def _recipe(self) -> list[str]:
        defaults = type(self).model_fields
        return [name for name in _RECIPE if getattr(self, name) != defaults[name].default]

    @property
    def kind(self) -> str:
        """Which source it has."""
        return next(name for name in _SOURCES if getattr(self, name) is not None)

    @property
    def built(self) -> bool:
        """Whether it is built here from source."""
        return self.kind in ("tarball", "tree", "git") or bool(self.debian and self.debian.build)

    def source(self) -> dict[str, Any]:
        """The source as the kernel's maker takes it: its kind, the source's keys, and the recipe where it is built."""
        own = getattr(self, self.kind).model_dump(exclude_none=True)
        recipe = self.model_dump(include=set(_RECIPE), exclude_none=True) if self.built else {}
        return {"kind": self.kind, **own, **recipe}


class Filesystem(_Strict):
    """A filesystem under test: how it is made and how it is mounted.

    options: of mkfs, after those that the format gives.
    """

    type: Literal["ext4", "btrfs", "xfs"]
    disk_mib: Annotated[int, Field(ge=128, le=65536)] = 1024
    format: Literal["common", "era"] | list[Text] = "common"
    options: list[Text] = []
    mount: Text = ""


# The disk that needs no entry: what a run has that names none.
RAM = "ram"

Mib = Annotated[int, Field(ge=16, le=65536)]


class Device(_Strict):
    """One block device of the guest. None: the model's own figure, and for `mib` the filesystem's `disk_mib`."""

    name: Label | None = None
    model: Literal["ram", "ssd", "hdd"]
    latency_us: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    queue_depth: Annotated[int, Field(ge=1, le=1024)] | None = None
    mib: Mib | None = None

    @model_validator(mode="after")
    def _timed(self) -> Device:
        for name in ("latency_us", "queue_depth"):
            if self.model == "ram" and getattr(self, name) is not None:
                raise ValueError(f"'{name}' is for ssd and hdd; a RAM disk answers at once")
        return self


# The forms of a disk: the key that tells it, and the keys that may stand beside.
_DISK_FORMS = {
    "model": ("latency_us", "queue_depth", "mib"),
    "devices": (),
    "bcache": ("backing", "cache"),
}


class Disk(_Strict):
    """What a filesystem lies on: one device, several for one filesystem, or one that bcache puts before another."""

    model: Literal["ram", "ssd", "hdd"] | None = None
    latency_us: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    queue_depth: Annotated[int, Field(ge=1, le=1024)] | None = None
    mib: Mib | None = None
    devices: list[Device] | None = None
    bcache: Literal["writethrough", "writeback", "writearound", "none"] | None = None
    backing: Device | None = None
    cache: Device | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Disk:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        forms = [name for name in _DISK_FORMS if name in given]
        if len(forms) != 1:
            said = " and ".join(f"'{name}'" for name in forms) or "none"
            raise ValueError(f"one of {', '.join(_DISK_FORMS)} is needed; there is {said}")
        foreign = [name for name in given if name != forms[0] and name not in _DISK_FORMS[forms[0]]]
        if foreign:
            raise ValueError(f"'{foreign[0]}' does not go with '{forms[0]}'")
        if self.model:
            self.parts[0]  # what a device refuses, this one does
        elif self.devices is not None:
            self._check_devices(self.devices)
        else:
            self._check_bcache()
        return self

    def _check_devices(self, devices: list[Device]) -> None:
        if len(devices) < 2:
            raise ValueError("'devices' is for two and more; write the keys of one device under the disk itself")
        names = [device.name for device in devices if device.name is not None]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"two devices are named '{twice}'; give one of them another name")

    def _check_bcache(self) -> None:
        for name in ("backing", "cache"):
            part = getattr(self, name)
            if part is None:
                raise ValueError(f"'{name}' is missing: bcache needs 'backing' and 'cache'")
            if part.name is not None:
                raise ValueError(f"'{name}' needs no 'name': the key is one")
        if self.cache.mib is None:
            raise ValueError("'cache' needs 'mib', its size")

    @property
    def form(self) -> str:
        """Which of the forms it has: "model", "devices" or "bcache"."""
        return next(name for name in _DISK_FORMS if getattr(self, name) is not None)

    @property
    def parts(self) -> list[Device]:
        """Its devices; of bcache the backing one, then the cache."""
        if self.form == "devices":
            return list(self.devices)
        if self.form == "bcache":
            return [self.backing, self.cache]
        return [Device(**{name: getattr(self, name) for name in ("model", *_DISK_FORMS["model"])})]

    def sizes_mib(self, disk_mib: int) -> tuple[int, ...]:
        """MiB of each device that the filesystem is made on; `disk_mib` is the filesystem's. bcache looks like one."""
        parts = self.parts[:1] if self.form == "bcache" else self.parts
        return tuple(part.mib or disk_mib for part in parts)


class Userland(_Strict):
    """The Debian packages that the maker VM runs mkfs from; None: those that the filesystem's type needs."""

    suite: Suite = "bookworm"
    packages: Annotated[list[Package], Field(min_length=1)] | None = None


class Maker(_Strict):
    """The VM that makes filesystem images: a kernel and a userland of its own, whatever is compared."""

    kernel: Kernel = Kernel(debian=DebianSource(suite="bookworm"))
    userland: Userland = Userland()


class Machine(_Strict):
    """The virtual machine. Every field is part of a run's identity."""

    memory_mib: Annotated[int, Field(ge=256, le=65536)] = 1024
    shift: Annotated[int, Field(ge=0, le=10)] = 0
    cpu: Text = "Nehalem"
    type: MachineType = "pc-i440fx-7.2"
    epoch_s: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1330473600
    kernel_arguments: Text = ""


class Limits(_Strict):
    """When a guest is given up, in seconds of the host, and how often the machine's own failures are tried again."""

    hang_s: Seconds = 300.0
    timeout_s: Seconds = 3600.0
    attempts: Annotated[int, Field(ge=1, le=10)] = 2

    @model_validator(mode="before")
    @classmethod
    def _hang_within_timeout(cls, data: Any) -> Any:
        """Without a word about one, the other one holds."""
        if not isinstance(data, dict) or not {"hang_s", "timeout_s"} & set(data):
            return data
        defaults = {name: field.default for name, field in cls.model_fields.items() if name not in data}
        whole = defaults | data
        given = [value for value in (whole["hang_s"], whole["timeout_s"]) if isinstance(value, int | float)]
        if len(given) < 2 or not given[0] > given[1]:
            return data
        if "timeout_s" not in data:
            return data | {"timeout_s": float(given[0])}
        if "hang_s" not in data:
            return data | {"hang_s": float(given[1])}
        raise ValueError(
            f"hang_s is {given[0]:g} and timeout_s {given[1]:g}: the whole run must be given as long at least"
        )


class Reference(_Strict):
    """What a published ratio is to: the figure's own cell and phase, but for what is named here."""

    phase: Said | None = None
    kernel: Label | None = None
    filesystem: Label | None = None
    disk: Label | None = None
    variant: Label | None = None

    @model_validator(mode="after")
    def _differs(self) -> Reference:
        if not self.model_dump(exclude_none=True):
            raise ValueError(f"one of {', '.join(type(self).model_fields)} is needed: what the other side differs in")
        return self


_QUANTITIES = ("elapsed_s", "used_bytes", "ratio")


class Figure(_Strict):
    """One published number: a time, used space, or a ratio of either to another cell.

    Without a kernel, disk or variant it stands beside the measured figures of each. kind: of btrfs's space; raw: with
    all copies of its profile.
    """

    phase: Said
    filesystem: Label
    kernel: Label | None = None
    disk: Label | None = None
    variant: Label | None = None
    elapsed_s: Seconds | None = None
    used_bytes: Annotated[int, Field(ge=0)] | None = None
    ratio: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    ratio_to: Reference | None = None
    of: Literal["elapsed_s", "used_bytes"] = "elapsed_s"
    kind: Literal["data", "metadata", "system", "all"] | None = None
    raw: bool = False

    @model_validator(mode="after")
    def _one_quantity(self) -> Figure:
        given = [name for name in _QUANTITIES if getattr(self, name) is not None]
        if len(given) != 1:
            said = " and ".join(f"'{name}'" for name in given) or "none"
            raise ValueError(f"one of {', '.join(_QUANTITIES)} is needed; there is {said}")
        if (self.ratio is None) != (self.ratio_to is None):
            raise ValueError("'ratio' and 'ratio_to' go together: the number, and what it is to")
        if self.of != "elapsed_s" and self.ratio is None:
            raise ValueError("'of' is for a ratio")
        if self.kind and self.used_bytes is None and self.of != "used_bytes":
            raise ValueError("'kind' is for used space")
        if self.raw and not self.kind:
            raise ValueError("'raw' needs a 'kind', of which btrfs keeps copies")
        return self


class Published(_Strict):
    """Figures somebody published for this experiment."""

    source: Said
    date: Said
    scale: dict[str, int]
    figures: list[Figure]
    note: str = ""


def _seeds(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number of seeds or a list of them")
    if isinstance(value, int):
        if value < 1:
            raise ValueError(f"{value} seeds: at least one is needed")
        if value > SEEDS_MAX:
            raise ValueError(f"{value} seeds: {SEEDS_MAX} is the most")
        return list(range(1, value + 1))
    if not isinstance(value, list):
        raise ValueError("must be a number of seeds or a list of them")
    if len(value) > SEEDS_MAX:
        raise ValueError(f"{len(value)} seeds: {SEEDS_MAX} is the most")
    return value


class Experiment(_Strict):
    """A question: a workload, the factors it is crossed with, and what was published about it.

    variants: parameters of the workload that differ, under a label each.
    """

    title: Said
    question: Said
    workload: dict[str, Any]
    kernels: Annotated[list[Label], Field(min_length=1)]
    filesystems: Annotated[list[Label], Field(min_length=1)]
    disks: Annotated[list[Label], Field(min_length=1)] = [RAM]
    variants: dict[Label, dict[str, Any]] = {}
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=2**32 - 1)]],
        Field(min_length=1),
        BeforeValidator(_seeds, json_schema_input_type=int | list[int]),
    ]
    published: list[Published] = []


class Config(_Strict):
    """The whole configuration.

    only: the experiments that are made, of those that there are; None: all.
    """

    title: Said = "Filesystems and kernels compared"
    results: Folder = "results"
    cache: Folder = "cache"
    clock: Literal["virtual"] = "virtual"
    mirror: Mirror | None = None
    snapshot_mirror: Annotated[Text, AfterValidator(_address_template)] = apt.SNAPSHOTS
    strict: bool = False
    machine: Machine = Machine()
    limits: Limits = Limits()
    maker: Maker = Maker()
    kernels: Annotated[dict[Label, Kernel], Field(min_length=1)]
    filesystems: Annotated[dict[Label, Filesystem], Field(min_length=1)]
    disks: dict[Label, Disk] = {RAM: Disk(model="ram")}
    experiments: Annotated[dict[Label, Experiment], Field(min_length=1)]
    only: Annotated[list[Label], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_some(cls, data: Any) -> Any:
        """Leave out the experiments that `only` does not name, before they are looked at: they may not fit the rest."""
        chosen, known = (data.get("only"), data.get("experiments")) if isinstance(data, dict) else (None, None)
        if not chosen or not isinstance(chosen, list) or not isinstance(known, dict):
            return data
        for name in chosen:
            if name not in known:
                raise UserError(f"only: no experiment '{name}'{_nearest(str(name), known)}")
        return data | {"experiments": {name: known[name] for name in known if name in chosen}}

    @model_validator(mode="before")
    @classmethod
    def _labels_differ(cls, data: Any) -> Any:
        for section in ("kernels", "filesystems", "disks", "experiments"):
            names = data.get(section) if isinstance(data, dict) else None
            if isinstance(names, dict):
                _no_twins([str(name) for name in names], section)
        return data

    @model_validator(mode="before")
    @classmethod
    def _has_ram(cls, data: Any) -> Any:
        disks = data.get("disks") if isinstance(data, dict) else None
        return data | {"disks": {RAM: {"model": "ram"}} | disks} if isinstance(disks, dict) else data


def _no_twins(names: list[str], path: str) -> None:
    seen: set[str] = set()
    for name in names:
        plain = unicodedata.normalize("NFC", name)
        if plain in seen:
            raise UserError(f"{path}: two levels are named '{plain}'; give one of them another name")
        seen.add(plain)


def schema() -> dict[str, Any]:
    """The configuration's JSON Schema."""
    return Config.model_json_schema()


def load(paths: list[Path], overrides: dict[str, Any] | None = None) -> Config:
    """Read configuration files, later ones over earlier ones, then `overrides`, and resolve the sum.

    Raises UserError: a file is missing or not YAML, a key stands twice, or the sum is not a configuration.
    Else as `resolve`.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        _merge(merged, read(path))
    _merge(merged, overrides or {})
    return resolve(merged)


def resolve(data: dict[str, Any]) -> Config:
    """A mapping as a Config whose every kernel is one kernel: what `validate` refuses is refused before any lookup.

    The lock file or, the first time, Debian says which kernels a ladder has; UserError or MachineError when neither.
    """
    config = validate(data)
    if any(kernel.debian and kernel.debian.ladder for kernel in config.kernels.values()):
        return validate(ladder.expand(config.model_dump()))
    return config


def read(path: Path) -> dict[str, Any]:
    """One YAML or JSON file as a mapping, with keys that stand twice refused."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"there is no configuration file {path}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"the configuration file {path} is not UTF-8 text: byte {error.start} is not") from None
    except OSError as error:
        raise UserError(f"the configuration file {path} can't be read: {error.strerror}") from None
    try:
        data = _parse(text)
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{place}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, text.find(chr(error.character))) + 1
        raise UserError(f"{path}, line {line}: the character U+{error.character:04X} can't stand in YAML") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise UserError(f"{path}: {_TOO_DEEP}") from None
    except ValueError as error:  # a date such as 2024-02-31, a number of many digits
        raise UserError(f"{path}: a value can't be read: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UserError(f"{path}: the configuration must be a mapping of keys to values")
    problem = _unusable(data)
    if problem:
        raise UserError(f"{path}: {problem}")
    return data


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once) if text.lstrip().startswith("{") else yaml.load(text, _OnceLoader)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise yaml.MarkedYAMLError(problem=f"'{twice}' stands twice; give one of them another name")
    return found


_TOO_DEEP = "values are nested too deeply"


def _unusable(data: Any) -> str:
    """What makes the values unfit for any file or command, in a clause; empty when nothing does."""
    waiting = [(data, 0)]
    for _ in range(_VALUES_MAX):
        if not waiting:
            return ""
        value, depth = waiting.pop()
        if depth > _DEPTH_MAX:  # a YAML anchor that holds itself, too
            return _TOO_DEEP
        if isinstance(value, dict):
            waiting += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            waiting += [(part, depth + 1) for part in value]
        elif isinstance(value, str) and ("\0" in value or (not value.isascii() and _not_utf8(value))):
            return f"the text {shown(value[:60])} has a character that no file can hold"
    return "there are too many values"


def _not_utf8(value: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in value)


def snapshot(config: Config, folder: Path) -> Path:
    """Keep the configuration in `folder` under a name made from its content; returns its path."""
    text = json.dumps(config.model_dump(), indent=1, ensure_ascii=False) + "\n"
    path = folder.resolve() / f"config-{digest.of_bytes(text.encode())[:16]}.json"
    if not path.exists():
        whole.write(path, text)
    return path


class _OnceLoader(yaml.SafeLoader):
    """YAML's loader keeps the last of two equal keys without a word; a level would vanish from the study."""


def _mapping(loader: _OnceLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, (list, dict)):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be text, and this one is a list or a mapping", key_node.start_mark
            )
        if key_node.tag != "tag:yaml.org,2002:merge" and str(key) in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"'{key}' stands twice; give one of them another name", key_node.start_mark
            )
        seen.add(str(key))
    loader.flatten_mapping(node)
    return {
        loader.construct_object(key, deep=True): loader.construct_object(value, deep=True) for key, value in node.value
    }


_OnceLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def validate(data: dict[str, Any]) -> Config:
    """A mapping as a Config. Raises UserError with the first thing that is wrong, its path and what to do."""
    problem = _unusable(data)
    if problem:
        raise UserError(f"the configuration: {problem}")
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise UserError(_sentence(error)) from None
    for name, other in (("results", "cache"), ("cache", "results")):
        folders = getattr(config, name), getattr(config, other)
        if _holds(*folders):
            raise UserError(
                f"{other}: must not be in the folder of {name}, which may be removed without it "
                f"({other} is {shown(folders[1])}, {name} is {shown(folders[0])})"
            )
    for name, filesystem in config.filesystems.items():
        problem = formats.problem(filesystem.type, filesystem.disk_mib)
        if problem:
            raise UserError(f"filesystems.{name}: {problem}")
    for name, disk in config.disks.items():
        problem = disks.problem(disk)
        if problem:
            raise UserError(f"disks.{name}: {problem}")
    if config.maker.kernel.debian and config.maker.kernel.debian.ladder:
        raise UserError("maker.kernel.debian.ladder: the maker VM needs one kernel, and a ladder has several")
    for name, experiment in config.experiments.items():
        path = f"experiments.{name}"
        for factor, known in (
            ("kernels", config.kernels),
            ("filesystems", config.filesystems),
            ("disks", config.disks),
        ):
            levels = getattr(experiment, factor)
            _no_twins(levels, f"{path}.{factor}")
            for level in levels:
                if level not in known:
                    raise UserError(f"{path}.{factor}: no entry '{level}' under {factor}{_nearest(level, known)}")
        if len(set(experiment.seeds)) != len(experiment.seeds):
            raise UserError(f"{path}.seeds: a seed stands twice, which would measure nothing new")
        _no_twins(list(experiment.variants), f"{path}.variants")
        _check_disks(config, experiment, path)
        _check_workload(experiment, path)
        _check_published(experiment, path)
    if config.disks[RAM] != Disk(model="ram"):
        raise UserError(f"disks.{RAM}: '{RAM}' is the RAM disk that is always there; give this one another name")
    _check_command_line(config)
    return config


def _check_disks(config: Config, experiment: Experiment, path: str) -> None:
    """Whether each filesystem fits each disk. What a kernel can do of a disk shows when a run is prepared."""
    for label in experiment.disks:
        for name in experiment.filesystems:
            filesystem = config.filesystems[name]
            sizes_mib = config.disks[label].sizes_mib(filesystem.disk_mib)
            if len(sizes_mib) > 1 and filesystem.type != "btrfs":
                raise UserError(
                    f"{path}.disks: '{label}' has {len(sizes_mib)} devices, which btrfs can use and filesystem "
                    f"'{name}', {filesystem.type}, can't"
                )
            problem = formats.problem(filesystem.type, min(sizes_mib))
            if problem:
                raise UserError(f"disks.{label}: {problem.replace('disk_mib', 'mib')} for filesystem '{name}'")


def _check_command_line(config: Config) -> None:
    if not config.machine.kernel_arguments:
        return
    from fsexp.vm import domain  # Jinja takes its time

    largest_mib = max(one.disk_mib for one in config.filesystems.values())
    lines = [
        domain.command_line(config.machine.model_dump(), disks.arguments(disks.layout(one, largest_mib)))
        for one in config.disks.values()
    ]
    over = max(len(line.encode()) for line in lines) + 1 - COMMAND_LINE_BYTES
    if over > 0:
        raise UserError(
            f"machine.kernel_arguments: the kernel's command line would be {over} bytes too long: it takes "
            f"{COMMAND_LINE_BYTES - 1}, fsexp's own arguments among them"
        )


def _check_published(experiment: Experiment, path: str) -> None:
    factors = {
        "kernel": experiment.kernels,
        "filesystem": experiment.filesystems,
        "disk": experiment.disks,
        "variant": list(experiment.variants),
    }
    for index, published in enumerate(experiment.published):
        seen = set()
        where = f"{path}.published.{index}"
        for figure in published.figures:
            named = [(figure, "")] + ([(figure.ratio_to, " for its ratio")] if figure.ratio_to else [])
            for cell, purpose in named:
                for factor, levels in factors.items():
                    level = getattr(cell, factor)
                    if level is not None and level not in levels:
                        known = _nearest(level, levels) if levels else f"; it has no {factor}s"
                        raise UserError(f"{where}: the experiment has no {factor} '{level}'{purpose}{known}")
            own = figure.model_dump(exclude=set(_QUANTITIES), exclude_none=True)
            key = json.dumps([own, next(name for name in _QUANTITIES if getattr(figure, name) is not None)])
            if key in seen:
                others = "".join(f", {level}" for level in (figure.kernel, figure.disk, figure.variant) if level)
                raise UserError(
                    f"{where}: two figures are of the phase '{figure.phase}' on '{figure.filesystem}'{others}"
                )
            seen.add(key)


def _check_workload(experiment: Experiment, path: str) -> None:
    given = dict(experiment.workload)
    name = given.pop("name", None)
    if name is None:
        raise UserError(f"{path}.workload: 'name' is missing; known are {', '.join(workload.NAMES)}")
    if name not in workload.NAMES:
        raise UserError(f"{path}.workload.name: no workload '{name}'{_nearest(str(name), workload.NAMES)}")
    phases: dict[str, None] = {}
    for variant, overrides in (experiment.variants or {"": {}}).items():
        try:
            # A variant may give what the workload itself leaves out: their sum is what must be right.
            parameters = workload.parameters(name, given | overrides)
        except ValidationError as error:
            own = variant and overrides.keys() & {part for item in error.errors() for part in item["loc"][:1]}
            where = f"{path}.variants.{variant}" if own else f"{path}.workload"
            raise UserError(_sentence(error, where)) from None
        phases |= dict.fromkeys(workload.phases(name, parameters))
    for index, published in enumerate(experiment.published):
        for figure in published.figures:
            for phase in (figure.phase, figure.ratio_to and figure.ratio_to.phase):
                if phase and phase not in phases:
                    raise UserError(f"{path}.published.{index}: no phase '{phase}'{_nearest(phase, phases)}")


def _nearest(word: str, known: Any) -> str:
    names = [str(name) for name in known]
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known are {', '.join(names)}"


# Pydantic's kinds of error that a plainer sentence suits better.
_PLAIN = {
    "missing": "is missing",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a number that ends",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "too_short": "must not be empty",
}


def _sentence(error: ValidationError, above: str = "") -> str:
    # A misspelt key makes two errors, an unknown key and a missing one: the first says more.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    # Of a union's members the one that got furthest says more.
    place = _place(first)
    first = max(
        (item for item in error.errors() if _place(item)[: len(place)] == place),
        key=lambda item: (item["type"] == first["type"] == "extra_forbidden", len(_place(item))),
    )
    location = ([above] if above else []) + _place(first)
    if first["type"] == "extra_forbidden":
        parent = ".".join(location[:-1])
        where = f"{parent}: " if parent else ""
        return f"{where}no such key '{location[-1]}'{_nearest(location[-1], _fields(error, first))}"
    path = ".".join(location) or "the configuration"
    value = first.get("input")
    if first["type"] == "literal_error":
        expected = re.findall(r"'([^']*)'", first["ctx"]["expected"])
        if not isinstance(value, str):
            if str(value) in expected:
                return f"{path}: must be text: write it in quotes{_it_is(value)}"
            return f"{path}: must be one of {', '.join(expected)}{_it_is(value)}"
        return f"{path}: no such value {_quoted(value)}{_nearest(value, expected)}"
    if first["type"] == "value_error":
        cause = first["ctx"]["error"].__cause__
        if isinstance(cause, ValidationError):  # of a workload within a workload's parameters
            return _sentence(cause, path)
        return f"{path}: {first['ctx']['error']}"
    plain = _PLAIN.get(first["type"])
    if first["type"] == "string_pattern_mismatch":
        plain = _FORMS.get(first["ctx"]["pattern"])
    if first["type"] == "string_type" and isinstance(value, int | float | datetime.date):
        plain = "must be text: write it in quotes"
    if plain is None:
        message = first["msg"]
        plain = message[:1].lower() + message[1:]
        plain = plain.removeprefix("input should ").removeprefix("string should ")
        plain = plain if plain.startswith("must") else f"must {plain}"
    return f"{path}: {plain}{'' if first['type'] == 'missing' else _it_is(value)}"


def _it_is(value: object) -> str:
    if value is None:
        return " (it is empty)"
    return f" (it is {shown(value)})" if isinstance(value, str | int | float | datetime.date) else ""


def _quoted(text: str) -> str:
    return f"'{shown(text)[1:-1]}'"


def _place(item: Any) -> list[str]:
    """Where an error is, by the keys in the file."""
    parts = list(item["loc"])
    # A key's own fault is reported under the key and "[key]", a union's under the member's name: neither helps.
    if parts and parts[-1] == "[key]":
        parts = parts[:-2]
    return [shown(str(part))[1:-1] for part in parts if not _is_member(part)]


def _is_member(part: object) -> bool:
    return isinstance(part, str) and (part == "[key]" or re.match(r"^(literal|list)\[", part) is not None)


def _fields(error: ValidationError, first: Any) -> list[str]:
    """The keys that are allowed where an unknown one stood."""
    model: Any = Config if error.title == "Config" else workload.model(error.title)
    for part in first["loc"][:-1]:
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            break
        if part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation)
    if isinstance(model, type) and issubclass(model, BaseModel):
        return list(model.model_fields)
    return []


def _model_in(annotation: Any) -> Any:
    """The model that a field holds, inside Annotated, list or dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def workload_parameters(name: str, given: dict[str, Any]) -> BaseModel:
    """A workload's parameters, for one that stands in no configuration. Raises UserError as `load` does."""
    if name not in workload.NAMES:
        raise UserError(f"there is no workload '{name}'{_nearest(name, workload.NAMES)}")
    try:
        return workload.parameters(name, given)
    except ValidationError as error:
        raise UserError(_sentence(error, name)) from None
