"""Kernels built from source: one configuration for all eras, what old trees need, the same bytes each time.

A build is kept under the digest of what goes in: the tree with its patches, configuration, adaptations, compiler and
binutils. vmimages/kernels/ holds the configuration (common.config) and the table of adaptations.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import IO, Any

import yaml

from fsexp import digest, lock, whole
from fsexp.errors import BuildFailed, MachineError, UserError
from fsexp.kernel import tree as source_tree
from fsexp.kernel.source import Source
from fsexp.kernel.version import Version, holds, parse

FORMAT = 1
FOLDER = Path(__file__).resolve().parents[2] / "vmimages" / "kernels"
COMMON = FOLDER / "common.config"

# Fixed, so that the same tree, configuration and compiler give the same bytes (Documentation/kbuild/reproducible-
# builds.rst). KCONFIG_NOTIMESTAMP: 2.6.39 writes the date into .config, which the kernel carries; 3.2 does not.
# LOCALVERSION is set and empty: else a tree inside a git checkout is called "+".
_ENVIRONMENT = {
    "ARCH": "x86_64",
    "KCONFIG_NOTIMESTAMP": "1",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "fsexp",
    "KBUILD_BUILD_HOST": "fsexp",
    "KBUILD_BUILD_VERSION": "1",
    "SOURCE_DATE_EPOCH": "0",
    "LOCALVERSION": "",
    "LC_ALL": "C",
    "TZ": "UTC",
}
# Of the caller's environment only these: a CFLAGS or a MAKEFLAGS of his must not change the kernel.
_KEPT = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME")

_OPTION = re.compile(r"(CONFIG_\w+=\S.*|#.*)?")

# Program -> Debian's package of it, and what it is for.
_PROGRAMS = {
    "make": "make",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "gzip": "gzip",
}


@dataclass(frozen=True)
class Tools:
    """What builds: the compiler as called, its version, and the versions that decide the bytes."""

    cc: str
    gcc: Version
    compiler: str
    binutils: str


@dataclass(frozen=True)
class Recipe:
    """How to configure: `config` a whole .config or None for the common one, `fragments` over it, in order."""

    config: Path | None
    fragments: tuple[Path, ...]
    compiler: str


def build(source: Source, recipe: Recipe, cache: Path, jobs: int) -> Path:
    """Build the tree and keep image, config, modules, build.log and built.json in a folder of the cache; its path.

    jobs: processes of make. Raises UserError where a program or file is missing,
    BuildFailed where the tree does not build, MachineError where make was killed or the disk is full.
    """
    tools = find_tools(recipe.compiler)
    release = source.release
    rows = adaptations(parse(release) if release else None, tools.gcc)
    texts = [_options(path) for path in (recipe.config or COMMON, *recipe.fragments)]
    inputs = {
        "format": FORMAT,
        "source": source.identity,
        "configuration": [digest.of_bytes(text.encode()) for text in texts],
        "whole_configuration": recipe.config is not None,
        "adaptations": rows,
        "headers": {row["add"]["from"]: digest.of_file(FOLDER / row["add"]["from"]) for row in rows if "add" in row},
        "compiler": tools.compiler,
        "binutils": tools.binutils,
        "environment": _ENVIRONMENT,
    }
    kept = cache / "kernels" / digest.of_value(inputs)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with lock.held(kept.with_suffix(".lock")):
        if not _is_whole(kept):
            _make(source, recipe, texts, tools, inputs, kept, jobs)
    return kept


def _is_whole(kept: Path) -> bool:
    """Whether a build is there and its files are those that were built; what is damaged is built again."""
    try:
        sums = json.loads((kept / "built.json").read_text(encoding="utf-8"))["files"]
        return all(digest.of_file(kept / name) == sha256 for name, sha256 in sums.items())
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return False


def find_tools(compiler: str) -> Tools:
    """The compiler and the programs that building needs. Raises UserError naming each one that is missing."""
    missing = [f"{name} (Debian's package {package})" for name, package in _PROGRAMS.items() if not shutil.which(name)]
    if not shutil.which(compiler):
        missing.insert(0, f"{compiler} (the compiler)")
    if missing:
        raise UserError(f"building a kernel needs {', '.join(missing)}")
    said = _first_line([compiler, "--version"])
    number = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
    if not re.fullmatch(r"[0-9.]+", number):
        raise UserError(f"{compiler} is not gcc ({said}); kernels are built with gcc here")
    # ccache gives back what the compiler gave: the bytes are the same with it and without.
    # make runs in the tree, where a relative path would lead elsewhere.
    called = str(Path(compiler).absolute()) if "/" in compiler else compiler
    cc = f"ccache {called}" if shutil.which("ccache") else called
    return Tools(cc, parse(number), said, _first_line(["ld", "--version"]))


def _first_line(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else ""


@once
def _table(name: str) -> list[dict[str, Any]]:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def adaptations(version: Version | None, gcc: Version) -> list[dict[str, Any]]:
    """The rows of adaptations.yaml for a tree and a compiler; with no version, those for any tree."""
    return [
        row
        for row in _table("adaptations.yaml")
        if (version is None or holds(row["kernels"], version)) and holds(row.get("gcc", ""), gcc)
    ]


def _options(path: Path) -> str:
    """A configuration's text. Kconfig passes over what it does not understand: a misspelt line would be lost."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"the kernel configuration {path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"the kernel configuration {path} is not UTF-8 text") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not _OPTION.fullmatch(line.strip()):
            raise UserError(
                f"{path}, line {number}: {line.strip()[:80]!r} sets no option; write CONFIG_NAME=value, or "
                "'# CONFIG_NAME is not set'"
            )
    return text


def _make(
    source: Source, recipe: Recipe, texts: list[str], tools: Tools, inputs: dict[str, Any], kept: Path, jobs: int
) -> None:
    log = kept.with_suffix(".log")
    work = _work_folder(kept.parent.resolve())
    try:
        tree = work / "linux"
        tree.mkdir()
        source.place(tree)
        version = parse(source_tree.release(tree) or "")
        rows = adaptations(version, tools.gcc)
        applied = [row["name"] for row in rows if _apply(row, tree, tools.gcc)]
        with log.open("wb") as out:
            make = _Make(tree, tools, rows, kept.parent.parent / "ccache", out)
            _configure(make, recipe, texts, log)
            config = (tree / ".config").read_text()
            _compile(make, config, jobs, version, tools, log)
        with whole.folder(kept) as fresh:
            shutil.copyfile(tree / "arch/x86/boot/bzImage", fresh / "bzImage")
            shutil.copyfile(tree / ".config", fresh / "config")
            shutil.copyfile(tree / "modules.builtin", fresh / "modules.builtin")
            if _has_modules(config):
                shutil.copytree(next((tree / "installed/lib/modules").iterdir()) / "kernel", fresh / "modules")
            shutil.copyfile(log, fresh / "build.log")
            built = {
                **inputs,
                "version": ".".join(map(str, version)),
                "adaptations": applied,
                "options_lacking": lacking(texts, config),
            }
            files = sorted(path for path in fresh.rglob("*") if path.is_file() and path.name != whole.MARKER)
            built["files"] = {path.relative_to(fresh).as_posix(): digest.of_file(path) for path in files}
            whole.write_json(fresh / "built.json", built)
        log.unlink()
    except OSError as error:
        raise MachineError(f"{error.filename or work}: {error.strerror} while a kernel was built") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _work_folder(beside: Path) -> Path:
    # A kernel's makefiles take a blank in a path for the end of it, and a colon for a rule's.
    plain = re.fullmatch(r"[\w/.+@-]+", str(beside), re.ASCII)
    return Path(tempfile.mkdtemp(prefix=".build-" if plain else "fsexp-build-", dir=beside if plain else None))


def _apply(row: dict[str, Any], tree: Path, gcc: Version) -> bool:
    """Whether the row changed something: an edit's text may be gone from a patched tree."""
    if "add" in row:
        target = tree / row["add"]["to"].format(gcc=gcc[0])
        if target.exists():
            return False
        shutil.copyfile(FOLDER / row["add"]["from"], target)
    if "edit" in row:
        file = tree / row["edit"]["file"]
        text = file.read_bytes() if file.exists() else b""
        if row["edit"]["find"].encode() not in text:
            return False
        file.write_bytes(text.replace(row["edit"]["find"].encode(), row["edit"]["replace"].encode()))
    return True


class _Make:
    """make in one tree, with the environment of a reproducible build; its output goes to the log."""

    def __init__(self, tree: Path, tools: Tools, rows: list[dict[str, Any]], ccache: Path, log: IO[bytes]) -> None:
        self._tree, self._log = tree, log
        flags = [flag for row in rows for flag in row.get("cc", [])]
        self._variables = [f"CC={' '.join([tools.cc, *flags])}"]
        self._environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ENVIRONMENT
        self._environment |= {"CCACHE_DIR": str(ccache.resolve()), "CCACHE_BASEDIR": str(tree.resolve())}

    @property
    def tree(self) -> Path:
        """Where the tree lies."""
        return self._tree

    def __call__(self, *arguments: str, answers: bytes | None = None, **environment: str) -> int:
        argv = ["make", *self._variables, *arguments]
        self._log.write(f"+ {shlex.join(argv)}\n".encode())
        self._log.flush()
        with _group(argv, self._tree, self._environment | environment, self._log, answers) as process:
            process.communicate(answers)
        if process.returncode < 0:
            raise MachineError(f"make was killed by signal {-process.returncode} while a kernel was built")
        return process.returncode


@contextmanager
def _group(
    argv: list[str], folder: Path, environment: dict[str, str], log: IO[bytes], answers: bytes | None
) -> Iterator[subprocess.Popen[bytes]]:
    # A process group of its own: whatever stops us must stop make's compilers too.
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL if answers is None else subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _configure(make: _Make, recipe: Recipe, texts: list[str], log: Path) -> None:
    whole_text = "\n".join(texts) + "\n"
    if recipe.config is None:
        # Beside the tree, not in it: git-describing scripts must not see a changed tree.
        fragment = make.tree.with_name("fragment.config")
        fragment.write_text(whole_text)
        status = make("allnoconfig", KCONFIG_ALLCONFIG=str(fragment.resolve()))
    else:
        (make.tree / ".config").write_text(whole_text)
        # oldconfig exists in every version (olddefconfig since 3.7); an empty line takes an option's default.
        status = make("oldconfig", answers=b"\n" * 20000)
    if status or not (make.tree / ".config").exists():
        raise BuildFailed(f"the kernel can't be configured: {_first_error(log)}; the log is {log}")


def _compile(make: _Make, config: str, jobs: int, version: Version, tools: Tools, log: Path) -> None:
    targets = ["bzImage", "modules"]
    status = make(f"-j{jobs}", *targets)
    if not status and _has_modules(config):
        status = make("modules_install", f"INSTALL_MOD_PATH={make.tree.resolve() / 'installed'}", "DEPMOD=true")
    if status:
        raise BuildFailed(
            f"Linux {'.'.join(map(str, version))} does not build: {_first_error(log)}{_too_new(version, tools)}; "
            f"the log is {log}"
        )


def _has_modules(config: str) -> bool:
    return re.search(r"^CONFIG_\w+=m$", config, re.MULTILINE) is not None


def _first_error(log: Path) -> str:
    """The first line that says what went wrong."""
    lines = log.read_text(errors="replace").splitlines()
    for pattern in (r"(fatal )?error:|undefined reference", r"\*\*\*|not found|No such file"):
        for line in lines:
            if re.search(pattern, line):
                return line.strip()[:300]
    return lines[-1].strip()[:300] if lines else "make said nothing"


def _too_new(version: Version, tools: Tools) -> str:
    for row in _table("compilers.yaml"):
        if holds(row["kernels"], version) and tools.gcc[0] > row["gcc"]:
            return (
                f"; the compiler is gcc {tools.gcc[0]}, and such kernels are known to build up to gcc {row['gcc']}: "
                f"install that and set `compiler: gcc-{row['gcc']}`"
            )
    return ""


def lacking(texts: list[str], config: str) -> list[str]:
    """The options that were asked for and are not in `config` as asked: what this version does not have."""
    wanted: dict[str, str] = {}
    for text in texts:
        for line in text.splitlines():
            if found := re.fullmatch(r"(CONFIG_\w+)=(.+)", line.strip()):
                wanted[found[1]] = found[2]
            elif found := re.fullmatch(r"# (CONFIG_\w+) is not set", line.strip()):
                wanted[found[1]] = "n"
    have = dict(re.findall(r"^(CONFIG_\w+)=(.+)$", config, re.MULTILINE))
    return sorted(name for name, value in wanted.items() if have.get(name, "n") != value)
