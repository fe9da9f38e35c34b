"""What a study's kernels differ in beside their version: where from, how configured, by what compiled.

Read from results/kernels/*/kernel.json and config. What is not written there is shown as not known.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsexp import plan, provenance
from fsexp.errors import UserError
from fsexp.kernel import option, version

# With more kernels than this a table of options lists kernels by value, not a column for each.
COLUMNS = 5
# A commit or digest is recognised by so many digits; the whole stands in the provenance.
DIGITS = 12


@dataclass(frozen=True)
class Kernel:
    """One kernel of the study. What is not known is None; `problem` says why a kernel is not there at all."""

    label: str
    folder: str  # relative to the results
    release: str | None
    problem: str = ""
    origin: str = ""
    configured: str = ""
    common: bool = False  # by the common configuration and nothing else
    built: bool = False  # here, from source
    compiler: str | None = None
    binutils: str | None = None
    adaptations: tuple[str, ...] = ()
    lacking: tuple[str, ...] | None = None
    options: dict[str, str] | None = field(default=None, repr=False)

    @property
    def rank(self) -> tuple:
        """Sorts kernels by release, and one that has none where the number in its name says, else last."""
        for text in (self.release or "", self.label):
            try:
                return (0, version.rank(text))
            except UserError:
                continue
        return (1, ())


def read(results: Path, labels: Iterable[str], runs: Iterable[dict]) -> list[Kernel]:
    """The kernels of those labels, in the order of their releases; `runs` are rows of the runs table."""
    reported: dict[str, str] = {}
    for row in runs:
        if row["release"]:
            reported.setdefault(row["kernel"], row["release"])
    return sorted((_read(results, label, reported.get(label)) for label in labels), key=lambda kernel: kernel.rank)


def _read(results: Path, label: str, reported: str | None) -> Kernel:
    folder = f"kernels/{plan.slug(label)}"
    path = results / folder / "kernel.json"
    document, error = provenance.load(path) if path.exists() else ({}, "not recorded")
    release = reported or _text(document.get("release"))
    problem = error or provenance.unavailable(document)
    if problem:
        return Kernel(label, folder, release, problem)
    source, build = (_dict(document.get(name)) for name in ("source", "build"))
    options = option.read(results / folder / "config")
    lacking = build.get("options_lacking")
    fragments = build.get("fragments") or 0
    compiler = _text(build.get("compiler")) or (options or {}).get("CC_VERSION_TEXT")
    return Kernel(
        label=label,
        folder=folder,
        release=release,
        origin=_origin(source, release),
        configured=_configured(source, build, fragments),
        common=build.get("configuration") == "common" and not fragments,
        built=bool(build),
        compiler=compiler,
        binutils=_text(build.get("binutils")),
        adaptations=tuple(build.get("adaptations") or ()),
        lacking=None if lacking is None else tuple(lacking),
        options=options,
    )


def _origin(source: dict, release: str | None) -> str:
    kind = source.get("kind")
    described = {"debian": _debian, "tarball": _tarball, "tree": _tree, "git": _git, "image": _image}.get(kind)
    text = described(source, release) if described else str(kind or "not known")
    patches = len(source.get("patches") or ())
    return f"{text}, {_several(patches, 'patch', 'patches')}" if patches else text


def _debian(source: dict, _release: str | None) -> str:
    packages = provenance.packages(source)
    named = [one for one in packages if re.match(r"linux-(image|source)-\d", str(one.get("package")))] or packages[:1]
    what = " ".join(f"{one.get('package')} {one.get('version')}" for one in named) or source.get("package")
    return " ".join(filter(None, ("Debian", source.get("suite"), source.get("snapshot")))) + f", {what}"


def _tarball(source: dict, release: str | None) -> str:
    known = source.get("release") or release
    return f"tarball of {known}" if known else f"tarball {_begin(source.get('sha256'))}"


def _tree(source: dict, _release: str | None) -> str:
    return f"source tree {_begin(source.get('sha256'))}"


def _git(source: dict, _release: str | None) -> str:
    return f"git commit {_begin(source.get('commit'))}"


def _image(source: dict, _release: str | None) -> str:
    return f"image {Path(source.get('file') or '').name or _begin(source.get('sha256'))}"


def _begin(digest: str | None) -> str:
    return (digest or "not known")[:DIGITS]


def _configured(source: dict, build: dict, fragments: int) -> str:
    if build:
        text = {"common": "the common configuration", "own": "a configuration of its own"}.get(
            build.get("configuration"), "not known"
        )
        return f"{text}, with {_several(fragments, 'fragment', 'fragments')}" if fragments else text
    return "Debian's" if source.get("kind") == "debian" else "by whoever built it"


def _several(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _dict(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def caution(kernels: Sequence[Kernel]) -> str:
    """What else than the version differs, or may, between kernels that are compared; empty where nothing does.

    A sentence without its end, to be followed by where to look.
    """
    had = [kernel for kernel in kernels if not kernel.problem]
    verdicts = {"configuration": _configured_alike(had), "compiler": _compiled_alike(had)}
    differ = " and ".join(word for word, alike in verdicts.items() if alike is False)
    doubtful = " and ".join(word for word, alike in verdicts.items() if alike is None)
    if not differ and not doubtful:
        return ""
    parts = [f"differ in {differ}" if differ else "", f"may differ in {doubtful}" if doubtful else ""]
    text = " and ".join(filter(None, parts))
    if len({kernel.rank for kernel in had}) == 1:
        return f"These kernels have the same release, and {text}"
    return f"These kernels {text} too, not in version alone"


def _configured_alike(kernels: Sequence[Kernel]) -> bool | None:
    """Whether they were configured in the same way; None where it can't be told."""
    if len(kernels) < 2 or all(kernel.common for kernel in kernels):
        return True
    first = kernels[0].options
    if first is not None and all(kernel.options == first for kernel in kernels):
        return True
    if len({kernel.configured for kernel in kernels}) > 1:
        return False
    # Files of the study may be the same ones; and without a configuration nobody knows.
    return None if all(kernel.built or kernel.options is None for kernel in kernels) else False


def _compiled_alike(kernels: Sequence[Kernel]) -> bool | None:
    # The program's name plays no part: gcc and gcc-12 can be the same.
    known = {re.sub(r"^\S+ ", "", kernel.compiler) for kernel in kernels if kernel.compiler}
    if len(known) > 1:
        return False
    return None if len(kernels) > 1 and any(not kernel.compiler for kernel in kernels) else True


def section(kernels: Sequence[Kernel]) -> dict:
    """What the page shows of them: `kernels`, and `differences` between those whose configuration is known."""
    known = [kernel for kernel in kernels if kernel.options is not None]
    page: dict[str, Any] = {
        "kernels": kernels,
        "without": [kernel.label for kernel in kernels if kernel.options is None],
        "differences": None,
    }
    if len(known) > 1:
        found = option.differences([kernel.options for kernel in known])
        labels = [kernel.label for kernel in known]
        page |= {
            "differences": found,
            "labels": labels,
            "columns": len(labels) <= COLUMNS,
            "rows": [_row(row, labels) for row in found.rows],
        }
    return page


def _row(row: option.Row, labels: list[str]) -> dict:
    """An option's row; `groups` lists (value, kernels) in the order of the kernels."""
    return {
        "name": row.option.names[0],
        "earlier": ", ".join(row.option.names[1:]),
        "reason": row.option.reason,
        "values": row.values,
        "groups": [(value, ranges(row.values, labels, value)) for value in dict.fromkeys(row.values)],
    }


def ranges(values: Sequence[Any], labels: Sequence[str], value: Any) -> str:
    """The labels whose value it is; three and more that follow each other by the first and the last."""
    stretches: list[list[str]] = [[]]
    for label, other in zip(labels, values, strict=True):
        if other == value:
            stretches[-1].append(label)
        elif stretches[-1]:
            stretches.append([])
    return ", ".join(
        f"{members[0]} to {members[-1]}" if len(members) > 2 else ", ".join(members) for members in stretches if members
    )
