"""The report: one HTML file that opens from disk, without a network and without scripts.

It is made from the tables, the plan and what lies beside the runs, and from nothing else: rendered
again from the same files it is the same file, byte for byte.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fsexp import answer, chart, comparison, display, grid, provenance, stats, table, whole
from fsexp.clock import Clock, clock
from fsexp.errors import MachineError
from fsexp.vm.outcome import OUTCOMES

# jinja2 is imported where it is used: most commands need no report.

TEMPLATES = Path(__file__).resolve().parent.parent / "reports"

RUN_FILES = {
    "console": "console.log",
    "records": "records.jsonl",
    "result": "run.json",
    "domain": "domain.xml",
}
CONSOLE_LINES = 20
CONSOLE_BYTES = 16384
# A console of each failed run up to this many; a page with thousands would not open.
CONSOLES_SHOWN = 200
# Fewer entries than this in a list stand open, more are folded.
OPEN_UP_TO = 40

# A parameter that says how many of something a workload handles, and one of it.
ITEMS = {"nfiles": "file"}


def render(plan_path: Path, tables: Path, results: Path, output: Path) -> None:
    """Write output/index.html, self-contained; links to tables and runs are relative.

    `tables` is a folder that `table.build` wrote, `results` the folder with runs, kernels and
    images. Raises UserError when the plan or the tables cannot be used, MachineError when the
    templates are not there or the page cannot be written.
    """
    plan = table.load_plan(plan_path)
    used_clock = clock(plan["study"].get("clock"))
    rows = {name: table.rows(table.read(tables, name)) for name in table.COLUMNS}
    link = _Links(results, tables, output)
    machine = provenance.Machine()
    runs = _listed_runs(plan, rows["runs"], results, link, machine)
    kernels = comparison.read(results, _kernels(plan), runs)
    page = {
        "title": plan["study"].get("title") or "Results",
        "clock": used_clock,
        "counts": _counts(runs),
        "planned": len(runs),
        "experiments": [
            _experiment(number, name, plan, runs, rows, used_clock, kernels)
            for number, name in enumerate(plan["experiments"], 1)
        ],
        "failures": [run for run in runs if run["outcome"] not in ("ok", "missing")],
        "missing": _missing(runs),
        "listed": _by_experiment(plan, runs),
        "warned": _warned(runs),
        "machine": machine,
        "comparison": comparison.section(kernels),
        "configurations": {kernel.label: link.configuration(kernel.folder) for kernel in kernels},
        "kernels": provenance.kernels(results, runs),
        "images": provenance.images(results, runs),
        "userlands": provenance.userlands(results),
        "cores": Counter(row["core_digest"] for row in runs if row["core_digest"]),
        "dictionary": _dictionary(plan),
        "tables": link.tables(),
        "consoles_shown": CONSOLES_SHOWN,
        "open_up_to": OPEN_UP_TO,
    }
    whole.write(output / "index.html", _html(page).encode("utf-8"))


def console_tail(path: Path, lines: int = CONSOLE_LINES) -> list[str] | None:
    """The last lines of a console log, as text that can be shown; None when there is no log.

    The log is bytes from a guest and may hold anything: what is not UTF-8 becomes U+FFFD, control
    characters become visible signs.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - CONSOLE_BYTES))
            content = stream.read()
    except OSError:
        return None
    found = content.split(b"\n")
    if size > CONSOLE_BYTES and len(found) > 1:
        found = found[1:]  # its beginning is cut off
    while found and not found[-1].strip():
        found.pop()
    return [display.visible(line.rstrip(b"\r").decode("utf-8", "replace")) for line in found[-lines:]]


class _Links:
    """Relative addresses from the page to files, percent-encoded."""

    def __init__(self, results: Path, tables: Path, output: Path) -> None:
        self._results = results
        self._tables = tables
        page = output.resolve()
        self._to_results = os.path.relpath(results.resolve(), page)
        self._to_tables = os.path.relpath(tables.resolve(), page)

    def run(self, folder: str) -> list[tuple[str, str]]:
        """(what it is, address) of those files of a run that exist."""
        here = self._results / folder
        return [
            (name, _address(self._to_results, folder, file))
            for name, file in RUN_FILES.items()
            if (here / file).exists()
        ]

    def configuration(self, folder: str) -> str | None:
        """The address of a kernel's configuration; None where there is none."""
        return _address(self._to_results, folder, "config") if (self._results / folder / "config").exists() else None

    def tables(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """(table, [(format, address)]) of those that exist."""
        kinds = dict.fromkeys(table.COLUMNS, ("csv", "parquet")) | {"dictionary": ("csv", "json")}
        return [
            (
                name,
                [
                    (kind, _address(self._to_tables, f"{name}.{kind}"))
                    for kind in extensions
                    if (self._tables / f"{name}.{kind}").exists()
                ],
            )
            for name, extensions in kinds.items()
        ]


def _address(*parts: str) -> str:
    return quote("/".join(part.replace(os.sep, "/") for part in parts), safe="/,=+")


def _untabled(plan: dict, planned: dict, reason: str = "the tables were made before the plan") -> dict:
    row = dict.fromkeys(column.name for column in table.columns(plan)["runs"])
    row |= planned["levels"]
    row |= {name: planned[name] for name in ("experiment", "seed", "folder")}
    return row | {"outcome": "missing", "reason": reason}


def _kernels(plan: dict) -> list[str]:
    """The labels of the kernels that are compared, each once."""
    return list(dict.fromkeys(label for one in plan["experiments"].values() for label in one["factors"]["kernel"]))


def _counts(runs: list[dict]) -> list[dict]:
    found = Counter(row["outcome"] for row in runs)
    order = [*(word for word in OUTCOMES if word in found)]
    order += [word for word in found if word not in OUTCOMES]
    return [{"outcome": word, "runs": found[word], "meaning": OUTCOMES.get(word, "")} for word in order]


def _cell_name(experiment: dict, levels: dict) -> str:
    """The levels of a run but the kernel, as one text."""
    return ", ".join(str(levels[name]) for name in experiment["factors"] if name != "kernel")


def _current(plan: dict, planned: dict, row: dict | None, found: table.Run) -> dict:
    """A run's row of the tables, or, where its folder says otherwise by now, why it gives no figure."""
    if row is None:
        return _untabled(plan, planned)
    if found.row["outcome"] == "missing" and row["outcome"] != "missing":
        gone = found.row["reason"] == table.NOT_RUN
        return found.row | {"reason": table.GONE if gone else found.row["reason"]}
    if row["outcome"] == "ok" and found.row["outcome"] != "ok":
        return found.row
    if row["outcome"] == "ok" and found.row["identity"] != row["identity"]:
        return _untabled(plan, planned, "the tables were made before this result")
    return row


def _listed_runs(plan: dict, rows: list[dict], results: Path, link: _Links, machine: provenance.Machine) -> list[dict]:
    """Every planned run: its row and what the page shows beside; `machine` takes in what each says of it."""
    listed, consoles = [], 0
    by_folder = {row["folder"]: row for row in rows}
    for number, planned in enumerate(plan["runs"], 1):
        found = table.load_run(plan, planned, results)
        row = _current(plan, planned, by_folder.get(planned["folder"]), found)
        document = found.document
        if document:
            machine.add(document, row["folder"])
        run = row | {
            "anchor": f"run-{number}",
            "column": _cell_name(plan["experiments"][row["experiment"]], row),
            "links": link.run(row["folder"]),
            "repeat": document.get("repeat"),
            "warning": next(map(str, document.get("warnings") or []), ""),
            "console": None,
            "console_left_out": False,
        }
        if row["outcome"] not in ("ok", "missing"):
            run["console_left_out"] = consoles >= CONSOLES_SHOWN
            if not run["console_left_out"]:
                run["console"] = console_tail(results / row["folder"] / RUN_FILES["console"])
                consoles += 1
        listed.append(run)
    return listed


def _missing(runs: list[dict]) -> list[dict]:
    """Runs without a result, one entry a reason, with how many there are of each experiment."""
    found = Counter((row["experiment"], row["reason"]) for row in runs if row["outcome"] == "missing")
    return [
        {"experiment": experiment, "reason": reason, "runs": number} for (experiment, reason), number in found.items()
    ]


def _warned(runs: list[dict]) -> list[dict]:
    """Cells whose kernels warned, one entry for each first warning, with the number of runs."""
    found = Counter((run["experiment"], run["kernel"], run["column"], run["warning"]) for run in runs if run["warning"])
    return [
        dict(zip(("experiment", "kernel", "column", "warning"), key, strict=True)) | {"runs": number}
        for key, number in found.items()
    ]


def _by_experiment(plan: dict, listed: list[dict]) -> list[dict]:
    groups = {name: [] for name in plan["experiments"]}
    for run in listed:
        groups[run["experiment"]].append(run)
    return [
        {
            "title": _title(plan, name),
            "column": ", ".join(factor for factor in plan["experiments"][name]["factors"] if factor != "kernel"),
            "runs": members,
            "open": len(members) <= OPEN_UP_TO,
        }
        for name, members in groups.items()
    ]


def _title(plan: dict, name: str) -> str:
    return plan["experiments"][name].get("title") or name


def _dictionary(plan: dict) -> list[dict]:
    return [{"table": name, "columns": described} for name, described in table.columns(plan).items()]


def _experiment(
    number: int,
    name: str,
    plan: dict,
    runs: list[dict],
    rows: dict,
    used_clock: Clock,
    kernels: list[comparison.Kernel],
) -> dict:
    experiment = plan["experiments"][name]

    def own(members: list[dict]) -> list[dict]:
        return [row for row in members if row["experiment"] == name]

    laid = grid.lay_out(experiment, own(runs), own(rows["phases"]), own(rows["space"]))
    parameters = (experiment.get("workload") or {}).get("parameters") or {}
    anchor = f"experiment-{number}"
    return {
        "anchor": anchor,
        "name": name,
        "title": _title(plan, name),
        "question": experiment.get("question") or "",
        "workload": (experiment.get("workload") or {}).get("name"),
        "parameters": [(key, display.quantity(value)) for key, value in parameters.items()],
        "answers": answer.sentences(laid, parameters, used_clock),
        "caution": comparison.caution([kernel for kernel in kernels if kernel.label in laid.kernels]),
        "columns": [laid.label(column) for column in laid.columns],
        "first_kernel": laid.kernels[0] if laid.kernels else "",
        "column_names": ", ".join(laid.factors),
        "phases": [
            {
                "name": phase,
                "rows": _matrix(laid, phase),
                "plots": [
                    {"svg": Markup(one.svg), "caption": one.caption}
                    for one in chart.plots(
                        laid, phase, f"{anchor}-phase-{place}", used_clock, [kernel.label for kernel in kernels]
                    )
                ],
            }
            for place, phase in enumerate(laid.phases, 1)
        ],
        "published": [_published(laid, one, parameters) for one in experiment.get("published") or []],
        "space_phases": [phase or "after the mount" for phase in laid.space_phases],
        "space": _space(laid),
    }


def _matrix(laid: grid.Grid, phase: str) -> list[dict]:
    """The rows of a phase's table: {kernel, cells: [...]}, a cell None where none was planned."""
    return [
        {"kernel": kernel, "cells": [_cell(laid, kernel, column, phase) for column in laid.columns]}
        for kernel in laid.kernels
    ]


def _cell(laid: grid.Grid, kernel: str, column: tuple, phase: str) -> dict | None:
    figure = laid.figures.get((kernel, column, phase))
    if figure is None:
        return None
    ok = 0 if figure.summary is None else figure.summary.count
    cell = {
        "seeds": f"{ok} of {figure.planned}",
        "value": None,
        "word": figure.word,
        "reason": figure.reason,
        "failed": [f"{word} ({number})" for word, number in figure.failed.items()],
        "errors": figure.errors,
    }
    if figure.summary is not None:
        ratio = laid.to_first_kernel(kernel, column, phase)
        spread = figure.summary.spread
        cell["value"] = display.seconds(figure.median_s)
        cell["ratio"] = None if ratio is None else display.times(ratio)
        cell["spread"] = None if spread is None else display.percent(spread)
    return cell


def _published(laid: grid.Grid, one: dict, parameters: dict) -> dict:
    """Published figures beside the measured ones.

    `rows` are figures and, after those of a phase, the ratios to the reference filesystem; their
    `cells` follow the kernels of the grid.
    """
    scale = one.get("scale") or {}
    item = next((key for key in ITEMS if scale.get(key) and parameters.get(key)), None)
    per_published, per_measured = (scale[item], parameters[item]) if item else (None, None)
    rows = []
    for phase, figures in _figures_by_phase(one).items():
        for filesystem, elapsed_s in figures.items():
            columns = [c for c in laid.columns if laid.filesystem(c) == filesystem] or [None]
            rows += [
                {
                    "kind": "time",
                    "phase": phase,
                    "label": filesystem if column is None else laid.label(column),
                    "published": _time(elapsed_s, per_published),
                    "cells": [
                        _measured(laid.figures.get((kernel, column, phase)), per_measured) for kernel in laid.kernels
                    ],
                }
                for column in columns
            ]
        rows += _published_ratios(laid, phase, figures)
    return {
        "source": one.get("source"),
        "date": one.get("date"),
        "note": one.get("note"),
        "item": ITEMS.get(item),
        "scales": [
            {
                "name": key,
                "published": display.quantity(value),
                "measured": display.quantity(parameters[key]) if key in parameters else None,
                "same": parameters.get(key) == value,
            }
            for key, value in scale.items()
        ],
        "kernels": laid.kernels,
        "rows": rows,
    }


def _figures_by_phase(one: dict) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for figure in one.get("figures") or []:
        found.setdefault(figure["phase"], {})[figure["filesystem"]] = figure["elapsed_s"]
    return found


def _published_ratios(laid: grid.Grid, phase: str, figures: dict[str, float]) -> list[dict]:
    rows = []
    for column in laid.columns:
        base = laid.reference(column)
        if base is None:
            continue
        published = stats.ratio(figures.get(laid.filesystem(column)), figures.get(laid.filesystem(base)))
        if published is None:
            continue
        ratios = [laid.between((kernel, column), (kernel, base), phase) for kernel in laid.kernels]
        rows.append(
            {
                "kind": "ratio",
                "phase": phase,
                "label": f"{laid.label(column)} / {laid.label(base)}",
                "published": _shown(display.times(published)),
                "cells": [_gap("not measured") if r is None else _shown(display.times(r)) for r in ratios],
            }
        )
    return rows


def _shown(value: str, each: str | None = None) -> dict:
    return {"value": value, "each": each, "word": ""}


def _gap(word: str) -> dict:
    return {"value": None, "each": None, "word": word}


def _time(value_s: float, items: int | None) -> dict:
    each = display.microseconds(value_s / items) if items else None
    return _shown(display.seconds(value_s), each)


def _measured(figure: grid.Figure | None, items: int | None) -> dict:
    if figure is None:
        return _gap("not planned")
    if figure.summary is None:
        return _gap(figure.word)
    return _time(figure.median_s, items)


def _space(laid: grid.Grid) -> list[dict]:
    rows = []
    for kernel in laid.kernels:
        for column in laid.columns:
            known = [laid.spaces.get((kernel, column, phase)) for phase in laid.space_phases]
            if not any(known):
                continue
            rows.append(
                {
                    "kernel": kernel,
                    "column": laid.label(column),
                    "cells": [one and _used(one) for one in known],
                }
            )
    return rows


def _used(space: grid.Space) -> dict:
    inodes = space.used_inodes
    return {
        "mebibytes": display.mebibytes(space.used_bytes),
        "inodes": None if inodes is None else display.count(inodes),
    }


def _html(page: dict) -> str:
    import jinja2

    def shown(value: Any) -> Any:
        if value is None:
            return ""
        plain = isinstance(value, str) and not isinstance(value, Markup)
        return display.visible(value) if plain else value

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["count"] = display.count
    try:
        style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
        return environment.get_template("report.html.j2").render(page, style=Markup(style))
    except (OSError, jinja2.TemplateNotFound) as error:
        raise MachineError(f"{TEMPLATES}: a template is missing: {error}") from error
