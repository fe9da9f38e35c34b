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

from fsexp import (
    answer,
    calibration,
    chart,
    comparison,
    display,
    grid,
    provenance,
    published,
    quantity,
    stats,
    table,
    whole,
)
from fsexp.clock import Clock, clock
from fsexp.errors import MachineError
from fsexp.plan import besides
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
# With more disks and variants than this the tables of each are folded below the one of all.
GROUPS_OPEN = 4
# More sentences than this are folded.
ANSWERS_OPEN = 8


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
        "calibration": _calibration(plan, results),
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
    others = [levels[name] for name in experiment["factors"] if name not in ("kernel", "filesystem", *table.UNNAMED)]
    return ", ".join(map(str, [levels["filesystem"], *besides(levels["disk"], levels["variant"]), *others]))


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
            "column": ", ".join(_varied(plan["experiments"][name])),
            "runs": members,
            "open": len(members) <= OPEN_UP_TO,
        }
        for name, members in groups.items()
    ]


def _varied(experiment: dict) -> list[str]:
    """The factors but the kernel, without those that have only the level that need not be said."""
    return [
        name
        for name, levels in experiment["factors"].items()
        if name != "kernel" and levels != [table.UNNAMED.get(name, levels)]
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
    own = {table: [row for row in members if row["experiment"] == name] for table, members in rows.items()}
    own["runs"] = [row for row in runs if row["experiment"] == name]
    grids = [grid.lay_out(experiment, group, own) for group in grid.groups(experiment)]
    parameters = (experiment.get("workload") or {}).get("parameters") or {}
    anchor = f"experiment-{number}"
    first = grids[0]
    phases = list(dict.fromkeys(phase for laid in grids for phase in laid.phases))
    return {
        "anchor": anchor,
        "name": name,
        "title": _title(plan, name),
        "question": experiment.get("question") or "",
        "workload": (experiment.get("workload") or {}).get("name"),
        "parameters": [(key, display.quantity(value)) for key, value in parameters.items()],
        "variants": _variants(experiment, parameters),
        "disks": _disks(plan, experiment),
        "answers": [sentence for laid in grids for sentence in _answers(laid, used_clock)],
        "answers_open": ANSWERS_OPEN,
        "caution": comparison.caution([kernel for kernel in kernels if kernel.label in first.kernels]),
        "widest": max(len(laid.columns) for laid in grids),
        "first_kernel": first.kernels[0] if first.kernels else "",
        "column_names": ", ".join(first.factors),
        "row_names": ", ".join(_varied(experiment)),
        "phases": [
            {
                "name": phase,
                **_overview(grids, phase),
                "kernels": first.kernels,
                "groups": [
                    _group(laid, phase, _anchor(anchor, place, at, grids), used_clock, kernels)
                    for at, laid in enumerate(grids, 1)
                    if phase in laid.phases
                ],
            }
            for place, phase in enumerate(phases, 1)
        ],
        "folded": len(grids) > GROUPS_OPEN,
        "published": [published.table(grids, one) for one in experiment.get("published") or []],
        "space_phases": [phase or "after the mount" for phase in quantity.space_phases(grids)],
        "space": quantity.space(grids),
        "kinds": quantity.kinds(grids),
        "loads": quantity.loads(grids),
        "latencies": quantity.latencies(grids),
    }


def _anchor(experiment: str, phase: int, group: int, grids: list[grid.Grid]) -> str:
    return f"{experiment}-phase-{phase}" if len(grids) == 1 else f"{experiment}-phase-{phase}-group-{group}"


def _answers(laid: grid.Grid, used_clock: Clock) -> list[str]:
    head = f"{laid.group.label}: " if laid.group.label else ""
    return [head + sentence for sentence in answer.sentences(laid, laid.group.parameters, used_clock)]


def _variants(experiment: dict, parameters: dict) -> list[dict]:
    """Of each variant, the parameters in which it differs from the first."""
    return [
        {
            "name": name,
            "parameters": [
                (key, display.quantity(value))
                for key, value in one["parameters"].items()
                if parameters.get(key) != value
            ],
        }
        for name, one in experiment["variants"].items()
        if name
    ]


def _disks(plan: dict, experiment: dict) -> list[dict]:
    """What an experiment's disks are, of those that are no RAM disk and that the plan describes."""
    described = plan.get("disks") or {}
    names = [name for name in experiment["factors"]["disk"] if name in described and name != table.UNNAMED["disk"]]
    return [{"name": name, "words": _disk(described[name])} for name in names]


def _disk(described: dict) -> str:
    devices = [_device(device) for device in described["devices"]]
    if described["bcache"]:
        return f"bcache, {described['bcache']}, of {devices[1]} before {devices[0]}"
    return " and ".join(devices)


def _calibration(plan: dict, results: Path) -> dict:
    """Nominal and measured figures of the study's disks: a row each figure, a column each kernel."""
    crossed = {
        disk: dict.fromkeys(
            kernel
            for one in plan["experiments"].values()
            if disk in one["factors"]["disk"]
            for kernel in one["factors"]["kernel"]
        )
        for disk in plan.get("disks") or {}
        if disk != table.UNNAMED["disk"]
    }
    kernels = [kernel for kernel in _kernels(plan) if any(kernel in among for among in crossed.values())]
    kinds: dict[tuple, dict[str, list[calibration.Figure]]] = {}
    unmeasured = []
    for disk, among in crossed.items():
        for kernel in among:
            devices: dict[int, list[calibration.Figure]] = {}
            for one in calibration.read(results / calibration.place(kernel, disk)):
                if isinstance(one, calibration.Unmeasured):
                    unmeasured.append(one)
                else:
                    devices.setdefault(one.number, []).append(one)
            # A disk may have a device that another disk of the study is: the figures are the device's.
            for figures in devices.values():
                kind = figures[0].model, tuple(one.nominal for one in figures)
                kinds.setdefault(kind, {}).setdefault(kernel, figures)
    models = Counter(model for model, _ in kinds)
    return {
        "kernels": kernels,
        "rows": [
            {
                "device": model if models[model] == 1 else f"{model}, {display.figure(nominal[0])} us",
                "what": figure.what,
                "unit": figure.unit,
                "nominal": "none" if figure.nominal is None else display.figure(figure.nominal),
                "cells": [_measured(measured[kernel][at]) if kernel in measured else None for kernel in kernels],
            }
            for (model, nominal), measured in sorted(kinds.items(), key=lambda item: (item[0][0], item[0][1][0] or 0))
            for at, figure in enumerate(next(iter(measured.values())))
        ],
        "unmeasured": unmeasured,
    }


def _measured(one: calibration.Figure) -> str:
    off = f", more than {display.percent(calibration.TOLERANCE)} % off" if one.good is False else ""
    return f"{display.figure(one.measured)}{off}"


def _device(device: dict) -> str:
    words = [device["model"]]
    if device["latency_us"] is not None:
        words.append(f"{display.count(device['latency_us'])} µs a request")
    if device["queue_depth"] is not None:
        words.append(f"{display.count(device['queue_depth'])} at once")
    if device["mib"] is not None:
        words.append(f"{display.count(device['mib'])} MiB")
    text = f"{words[0]} ({', '.join(words[1:])})" if words[1:] else words[0]
    return f"{device['name']}: {text}" if device["name"] else text


def _group(laid: grid.Grid, phase: str, anchor: str, used_clock: Clock, kernels: list[comparison.Kernel]) -> dict:
    plots = chart.plots(laid, phase, anchor, used_clock, [kernel.label for kernel in kernels])
    return {
        "label": laid.group.label,
        "columns": [laid.label(column) for column in laid.columns],
        "rows": _matrix(laid, phase),
        "plots": [{"svg": Markup(one.svg), "caption": one.caption} for one in plots],
    }


def _overview(grids: list[grid.Grid], phase: str) -> dict:
    """A phase on all disks with all variants, a row each, and what its ratios are to; none with but one group."""
    places = [(laid, column) for laid in grids if phase in laid.phases for column in laid.columns]
    if len(grids) == 1 or not places:
        return {"overview": [], "base": ""}
    base = next(
        (place for place in places if any(_median_s(*place, one, phase) for one in place[0].kernels)), places[0]
    )
    rows = []
    for laid, column in places:
        cells = [_cell(laid, kernel, column, phase) for kernel in laid.kernels]
        for kernel, cell in zip(laid.kernels, cells, strict=True):
            if cell is not None:
                ratio = stats.ratio(_median_s(laid, column, kernel, phase), _median_s(*base, kernel, phase))
                cell["ratio"] = None if ratio is None else display.times(ratio)
        rows.append({"label": laid.name(column), "cells": cells})
    return {"overview": rows, "base": base[0].name(base[1])}


def _median_s(laid: grid.Grid, column: tuple, kernel: str, phase: str) -> float | None:
    figure = laid.figures.get((kernel, column, phase))
    return figure and figure.median_s


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
