"""The study's configuration: what `config.yaml` may say, and the sentence that says what is wrong with it.

The models below are the only description of the format; `schema()` gives them as JSON Schema.
"""

from __future__ import annotations

import difflib
import json
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
from fsexp.errors import UserError
from fsexp.image import formats
from fsexp.kernel import debian, ladder

__all__ = [
    "Config",
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


def _label(value: object) -> object:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f"the name {value} is read as a number by YAML: write it in quotes")
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise ValueError("a name must not be empty")
    if any(unicodedata.category(c) == "Cc" for c in value):
        raise ValueError("a name must not contain control characters")
    if len(value) > 200:
        raise ValueError(f"the name is {len(value)} characters long; 200 is the most")
    # Both Unicode forms of "é" are one name: two levels that look alike would be two rows of one label.
    return unicodedata.normalize("NFC", value)


Label = Annotated[str, BeforeValidator(_label)]


def _one_field(value: str) -> str:
    # The guest's set-up file separates fields by tabs and directives by line feeds.
    if any(unicodedata.category(c) == "Cc" for c in value):
        raise ValueError("must not contain tabs, line feeds or other control characters")
    return value


Text = Annotated[str, AfterValidator(_one_field)]
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
Suite = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9./-]*$")]


def _release(value: object) -> object:
    # YAML reads 3.10 without quotes as the number 3.1.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f"{value} is read as a number by YAML: write it in quotes")
    return value


def _sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("must be a sha256: 64 hexadecimal digits")
    return value.lower()


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
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)+$")]

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
        source = re.match(r"linux-source(-|$)", self.package)
        if self.build and not source:
            raise ValueError(f"'build' needs a package of kernel source, as linux-source-6.1, not {self.package}")
        if source and not self.build:
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
    compiler: Annotated[str, Field(pattern=r"^[A-Za-z0-9/._+-]+$")] = "gcc"

    @model_validator(mode="after")
    def _one_source(self) -> Kernel:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            said = f"'{given[0]}' and '{given[1]}'" if given else "none"
            raise ValueError(f"one source is needed, of {', '.join(_SOURCES)}; there is {said}")
        recipe = sorted(self.model_fields_set & set(_RECIPE))
        if recipe and not self.built:
            raise ValueError(
                f"'{recipe[0]}' is for kernels that are built from source, and {given[0]} is built already"
            )
        return self

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
    """A filesystem under test: how it is made and how it is mounted."""

    type: Literal["ext4", "btrfs", "xfs"]
    disk_mib: Annotated[int, Field(ge=128, le=65536)] = 1024
    format: Literal["common", "era"] | list[Text] = "common"
    mount: Text = ""


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
    type: Text = "pc-i440fx-7.2"
    epoch_s: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1330473600
    kernel_arguments: Text = ""


class Limits(_Strict):
    """When a guest is given up, in seconds of the host, and how often the machine's own failures are tried again."""

    hang_s: Annotated[float, Field(gt=0)] = 300.0
    timeout_s: Annotated[float, Field(gt=0)] = 3600.0
    attempts: Annotated[int, Field(ge=1, le=10)] = 2


class Figure(_Strict):
    """One published number."""

    phase: str
    filesystem: Label
    elapsed_s: Annotated[float, Field(gt=0)]


class Published(_Strict):
    """Figures somebody published for this experiment."""

    source: str
    date: str
    scale: dict[str, int]
    figures: list[Figure]
    note: str = ""


def _seeds(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number of seeds or a list of them")
    if isinstance(value, int):
        if value < 1:
            raise ValueError(f"{value} seeds: at least one is needed")
        return list(range(1, value + 1))
    if not isinstance(value, list):
        raise ValueError("must be a number of seeds or a list of them")
    return value


class Experiment(_Strict):
    """A question: a workload, the factors it is crossed with, and what was published about it."""

    title: str
    question: str
    workload: dict[str, Any]
    kernels: Annotated[list[Label], Field(min_length=1)]
    filesystems: Annotated[list[Label], Field(min_length=1)]
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=2**32 - 1)]],
        Field(min_length=1),
        BeforeValidator(_seeds, json_schema_input_type=int | list[int]),
    ]
    published: list[Published] = []


class Config(_Strict):
    """The whole configuration."""

    title: str = "Filesystems and kernels compared"
    results: Annotated[str, Field(min_length=1)] = "results"
    cache: Annotated[str, Field(min_length=1)] = "cache"
    clock: Literal["virtual"] = "virtual"
    mirror: Text | None = None
    snapshot_mirror: Annotated[Text, AfterValidator(_address_template)] = apt.SNAPSHOTS
    strict: bool = False
    machine: Machine = Machine()
    limits: Limits = Limits()
    maker: Maker = Maker()
    kernels: Annotated[dict[Label, Kernel], Field(min_length=1)]
    filesystems: Annotated[dict[Label, Filesystem], Field(min_length=1)]
    experiments: Annotated[dict[Label, Experiment], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _labels_differ(cls, data: Any) -> Any:
        for section in ("kernels", "filesystems", "experiments"):
            names = data.get(section) if isinstance(data, dict) else None
            if isinstance(names, dict):
                _no_twins([str(name) for name in names], section)
        return data


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
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the configuration file {path} can't be read: {error}") from None
    try:
        data = json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, _OnceLoader)
    except (yaml.YAMLError, json.JSONDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        place = f", line {where.line + 1}" if where else ""
        problem = getattr(error, "problem", None) or str(error)
        raise UserError(f"{path}{place}: {problem}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UserError(f"{path}: the configuration must be a mapping of keys to values")
    return data


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
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise UserError(_sentence(error)) from None
    for name, filesystem in config.filesystems.items():
        problem = formats.problem(filesystem.type, filesystem.disk_mib)
        if problem:
            raise UserError(f"filesystems.{name}: {problem}")
    if config.maker.kernel.debian and config.maker.kernel.debian.ladder:
        raise UserError("maker.kernel.debian.ladder: the maker VM needs one kernel, and a ladder has several")
    for name, experiment in config.experiments.items():
        path = f"experiments.{name}"
        for factor, known in (("kernels", config.kernels), ("filesystems", config.filesystems)):
            levels = getattr(experiment, factor)
            _no_twins(levels, f"{path}.{factor}")
            for level in levels:
                if level not in known:
                    raise UserError(f"{path}.{factor}: no entry '{level}' under {factor}{_nearest(level, known)}")
        if len(set(experiment.seeds)) != len(experiment.seeds):
            raise UserError(f"{path}.seeds: a seed stands twice, which would measure nothing new")
        _check_workload(experiment, path)
    return config


def _check_workload(experiment: Experiment, path: str) -> None:
    given = dict(experiment.workload)
    name = given.pop("name", None)
    if name is None:
        raise UserError(f"{path}.workload: 'name' is missing; known are {', '.join(workload.NAMES)}")
    if name not in workload.NAMES:
        raise UserError(f"{path}.workload.name: no workload '{name}'{_nearest(str(name), workload.NAMES)}")
    try:
        parameters = workload.parameters(name, given)
    except ValidationError as error:
        raise UserError(_sentence(error, f"{path}.workload")) from None
    phases = workload.phases(name, parameters)
    for index, published in enumerate(experiment.published):
        for figure in published.figures:
            if figure.phase not in phases:
                raise UserError(f"{path}.published.{index}: no phase '{figure.phase}'{_nearest(figure.phase, phases)}")


def _nearest(word: str, known: Any) -> str:
    names = [str(name) for name in known]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
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
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "too_short": "must not be empty",
}


def _sentence(error: ValidationError, above: str = "") -> str:
    # A misspelt key makes two errors, an unknown key and a missing one: the first says more.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    # A key's own fault is reported under "[key]", a union's under the member's name: neither is in the file.
    location = [above] if above else []
    location += [str(part) for part in first["loc"] if not _is_member(part)]
    if first["type"] == "extra_forbidden":
        parent = ".".join(location[:-1])
        where = f"{parent}: " if parent else ""
        return f"{where}no such key '{location[-1]}'{_nearest(location[-1], _fields(error, first))}"
    path = ".".join(location) or "the configuration"
    value = first.get("input")
    shown = f" (it is {json.dumps(value, ensure_ascii=False)})" if isinstance(value, (str, int, float)) else ""
    if first["type"] == "literal_error":
        expected = re.findall(r"'([^']*)'", first["ctx"]["expected"])
        return f"{path}: no such value '{value}'{_nearest(str(value), expected)}"
    if first["type"] == "value_error":
        return f"{path}: {first['ctx']['error']}"
    plain = _PLAIN.get(first["type"])
    if plain is None:
        message = first["msg"]
        plain = message[:1].lower() + message[1:]
        plain = plain.removeprefix("input should ").removeprefix("string should ")
        plain = plain if plain.startswith("must") else f"must {plain}"
    return f"{path}: {plain}{'' if first['type'] == 'missing' else shown}"


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
