"""Tidy tables of a plan's runs: what was run, how long each phase took, what space was used.

`column` has their columns, `measured` the rows of one run. A table without rows still has its typed columns.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

from fsexp import column, measured, whole
from fsexp.column import COLUMNS, Column
from fsexp.errors import UserError
from fsexp.measured import Malformed
from fsexp.vm import outcome

if TYPE_CHECKING:
    import pandas

# pandas and pyarrow are imported where they are used: importing them takes longer than most commands do.

FORMAT = 1
NOT_RUN = "not run yet"
# Why a run that the tables have is missing now.
GONE = "its run.json is gone since the tables were made; `snakemake all` makes it again"
FACTORS_ALWAYS = ("kernel", "filesystem")
# The level of a factor that a plan or a run from before there was such a factor does not name.
UNNAMED = {"disk": "ram", "variant": ""}
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

DICTIONARY_FIELDS = ("table", "name", "unit", "meaning", "type")


@dataclass(frozen=True)
class Run:
    """A planned run and what became of it.

    `planned` is its entry in the plan. `document` is run.json, or {} unless it is valid and of
    this run. `row` is its row of the runs table, `rows` has those of the others by table, all
    empty unless the outcome is ok.
    """

    planned: dict
    document: dict
    row: dict
    rows: dict[str, list[dict]]


def load_plan(plan_path: Path) -> dict:
    """The plan as a dict. Raises UserError when the file cannot be read or is not a plan."""
    again = f"`fsexp plan --output {plan_path}` makes it"
    try:
        plan = read_json(plan_path)
    except FileNotFoundError:
        raise UserError(f"there is no plan at {plan_path}; {again}") from None
    except OSError as error:
        raise UserError(f"{plan_path}: cannot read the plan: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{plan_path} is no plan, for it is not JSON; {again} again") from None
    whole = (
        isinstance(plan, dict)
        and plan.get("format") == FORMAT
        and isinstance(plan.get("experiments"), dict)
        and isinstance(plan.get("runs"), list)
        and isinstance(plan.get("study"), dict)
    )
    if not whole:
        raise UserError(f"{plan_path}: not a plan of format {FORMAT}; {again} again")
    if not all(map(_is_experiment, plan["experiments"].values())):
        raise UserError(f"{plan_path}: an experiment of the plan is damaged; {again} again")
    if not all(_is_run(one, plan["experiments"]) for one in plan["runs"]):
        raise UserError(f"{plan_path}: a run of the plan is damaged; {again} again")
    for one in plan["experiments"].values():
        one["factors"] |= {name: [level] for name, level in UNNAMED.items() if name not in one["factors"]}
        one.setdefault("variants", {})
    for one in plan["runs"]:
        one["levels"] = UNNAMED | one["levels"]
    return plan


def variant(experiment: dict, levels: dict) -> dict:
    """The `parameters` and `phases` of an experiment of the plan at these levels."""
    own = {"parameters": experiment["workload"]["parameters"], "phases": experiment["phases"]}
    return experiment["variants"].get(levels["variant"], own)


def _has(value: Any, members: dict[str, type]) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in members.items())


def _is_experiment(value: Any) -> bool:
    return (
        _has(value, {"factors": dict, "phases": list, "seeds": list, "workload": dict})
        and all(isinstance(levels, list) for levels in value["factors"].values())
        and all(name in value["factors"] for name in FACTORS_ALWAYS)
        and isinstance(value["workload"].get("parameters"), dict)
        and isinstance(value.get("variants", {}), dict)
        and all(_has(one, {"parameters": dict, "phases": list}) for one in value.get("variants", {}).values())
    )


def _is_run(value: Any, experiments: dict) -> bool:
    return (
        _has(value, {"experiment": str, "levels": dict, "seed": int, "folder": str})
        and value["experiment"] in experiments
        and all(name in value["levels"] for name in FACTORS_ALWAYS)
    )


def read_json(path: Path) -> Any:
    """The parsed content of a JSON file.

    Raises OSError when it cannot be read, ValueError when it is not JSON (NaN and Infinity are
    not). Text that has no UTF-8 form (lone surrogates) comes back with "?" in its place.
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number")

    try:
        text = path.read_bytes().decode("utf-8")
        value = json.loads(text, parse_constant=refuse)
        # Only an escape can bring a surrogate, and few files have one: walking all is slow.
        return _storable(value) if _SURROGATE_ESCAPE.search(text) else value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_storable(name): _storable(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_storable(member) for member in value]
    return value


def factors(plan: dict) -> list[str]:
    """The factors of all experiments: kernel, filesystem, disk and variant, then others as they appear."""
    names = dict.fromkeys([*FACTORS_ALWAYS, *UNNAMED])
    for experiment in plan["experiments"].values():
        names.update(dict.fromkeys(experiment["factors"]))
    taken = {column.EXPERIMENT.name, column.CLOCK.name, column.SEED.name}
    taken.update(one.name for columns in COLUMNS.values() for one in columns)
    for name in names:
        if name in taken:
            raise UserError(f"A factor cannot be called {name!r}: the tables use that name.")
    return list(names)


def columns(plan: dict) -> dict[str, tuple[Column, ...]]:
    """Each table's columns, in order."""
    levels = tuple(column.text(name, f"level of the factor {name}") for name in factors(plan))
    key = (column.EXPERIMENT, *levels, column.CLOCK, column.SEED)
    return {table: key + rest for table, rest in COLUMNS.items()}


def load_run(plan: dict, planned: dict, results: Path) -> Run:
    """What became of a planned run. Never raises for what is in its folder.

    A run.json that cannot be used gives the outcome `infrastructure` and a reason that names the
    file; one that says `ok` without all its records, `no-result`; one of another run gives
    `missing`, as does none at all.
    """
    name = f"{planned['folder']}/run.json"
    key = {"experiment": planned["experiment"]}
    key |= {factor: planned["levels"].get(factor) for factor in factors(plan)}
    key |= {"clock": plan["study"].get("clock"), "seed": planned["seed"]}

    def without_result(outcome: str, reason: str) -> Run:
        row = dict.fromkeys(one.name for one in COLUMNS["runs"])
        row |= key | {"outcome": outcome, "reason": reason, "folder": planned["folder"]}
        return Run(planned, {}, row, {})

    try:
        document = read_json(results / name)
    except (FileNotFoundError, NotADirectoryError):
        return without_result("missing", NOT_RUN)
    except OSError as error:
        return without_result("infrastructure", f"{name}: {error.strerror}")
    except ValueError as error:
        return without_result("infrastructure", f"{name}: not JSON: {error}")
    try:
        _check_head(document)
        wanted = variant(plan["experiments"][planned["experiment"]], planned["levels"])
        foreign = _foreign(document, planned, key["clock"], wanted["parameters"])
        if foreign:
            return without_result("missing", f"{name} is of another run: {foreign}")
        row = key | _run_row(document) | {"folder": planned["folder"]}
        ok = row["outcome"] == "ok"
        rows = measured.rows(document) if ok else {}
        lost = measured.lost(document, wanted["phases"]) if ok else ""
        if lost:
            row |= {"outcome": "no-result", "reason": f"{name}: {lost}"}
            rows = {}
    except Malformed as error:
        return without_result("infrastructure", f"{name}: {error}")
    return Run(planned, document, row, {table: [key | one for one in members] for table, members in rows.items()})


def build(plan_path: Path, results: Path, output: Path) -> None:
    """Write the tables of a plan's runs to the folder `output`, made when it is not there.

    Each as .parquet and .csv; dictionary.csv and dictionary.json describe their columns. Raises
    UserError for an unusable plan, MachineError when writing fails.
    """
    import pandas

    plan = load_plan(plan_path)
    described = columns(plan)
    rows = {table: [] for table in described}
    for planned in plan["runs"]:
        run = load_run(plan, planned, results)
        rows["runs"].append(run.row)
        for table, members in run.rows.items():
            rows[table] += members
    for table, table_columns in described.items():
        frame = _frame(table_columns, rows[table])
        whole.write(output / f"{table}.parquet", _parquet(table_columns, frame))
        whole.write(output / f"{table}.csv", _csv(frame))
    dictionary = [
        {"table": table} | {field: getattr(one, field) for field in DICTIONARY_FIELDS[1:]}
        for table, table_columns in described.items()
        for one in table_columns
    ]
    whole.write(output / "dictionary.csv", _csv(pandas.DataFrame(dictionary, columns=DICTIONARY_FIELDS)))
    document = {"format": FORMAT, "columns": dictionary}
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    whole.write(output / "dictionary.json", text.encode("utf-8"))


def read(tables: Path, name: str) -> pandas.DataFrame:
    """A table that `build` wrote, with nullable dtypes. Raises UserError when it is not there or broken."""
    import pandas

    path = tables / f"{name}.parquet"
    try:
        frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")
    except FileNotFoundError:
        raise UserError(f"there is no table {path}; `fsexp tables` makes it") from None
    except (OSError, ValueError):  # pyarrow's own errors are ValueErrors
        raise UserError(f"{path} is no table; `fsexp tables` makes it again") from None
    absent = {one.name for one in COLUMNS[name]}.difference(frame.columns)
    if absent:
        raise UserError(f"{path} has no column {min(absent)}; `fsexp tables` makes it again")
    return frame


def rows(frame: pandas.DataFrame) -> list[dict]:
    """The rows of a table as plain Python values, None where there is none."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _check_head(document: Any) -> None:
    if not isinstance(document, dict):
        raise Malformed("not an object")
    if document.get("format") != FORMAT:
        raise Malformed(f"not of format {FORMAT}")
    kinds = {"experiment": str, "levels": dict, "seed": int, "clock": str, "outcome": str}
    for member, kind in kinds.items():
        if not isinstance(document.get(member), kind):
            raise Malformed(f"{member} is missing or of another type")


def _foreign(document: dict, planned: dict, clock: str, parameters: dict) -> str:
    """What of the document is not this planned run's; empty when it is."""
    own = document | {"levels": UNNAMED | document["levels"]}
    for member in ("experiment", "levels", "seed"):
        if own[member] != planned[member]:
            return f"its {member} is {document[member]!r}"
    # Instructions and real time must never meet in one table under one label.
    if document["clock"] != clock:
        return f"its clock is {document['clock']!r}"
    # A run that was not booted has none; the others' figures are of that scale and no other.
    if document["outcome"] == "ok" and document.get("parameters") != parameters:
        return f"its parameters are {document.get('parameters')!r}"
    return ""


def _run_row(document: dict) -> dict:
    inputs = _member(document, "inputs", dict) or {}
    row = {
        "outcome": document["outcome"],
        "reason": _member(document, "reason", str) or "",
        "release": _member(document, "release", str),
        "identity": _member(document, "identity", str),
        "wall_s": _seconds(document, "wall_s"),
        "boot_wall_s": _seconds(document, "boot_wall_s"),
        "warnings": None if (warnings := _member(document, "warnings", list)) is None else len(warnings),
    }
    if row["outcome"] not in outcome.MADE:
        raise Malformed(f"there is no outcome {row['outcome']!r}")
    for kind in ("kernel", "image", "ops", "core", "machine", "userland"):
        row[f"{kind}_digest"] = _member(inputs, kind, str)
    return row


def _member(document: dict, name: str, kind: type | UnionType) -> Any:
    value = document.get(name)
    if value is not None and not isinstance(value, kind):
        raise Malformed(f"{name} is of another type")
    return value


def _seconds(document: dict, name: str) -> float | None:
    value = _member(document, name, int | float)
    if value is None:
        return None
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if isinstance(value, bool) or not math.isfinite(seconds):
        raise Malformed(f"{name} is not a time")
    return seconds


# The dictionary's type of a column -> pandas's, which keeps whole numbers whole where a value is missing.
_DTYPES = {"string": "string", "int64": "Int64", "float64": "Float64"}


def _frame(table_columns: Iterable[Column], rows: list[dict]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame(
        {one.name: pandas.array([row[one.name] for row in rows], dtype=_DTYPES[one.type]) for one in table_columns}
    )


def _parquet(table_columns: Iterable[Column], frame: pandas.DataFrame) -> bytes:
    import pyarrow
    import pyarrow.parquet

    # A schema of our own, since each column carries its unit and meaning.
    schema = pyarrow.schema(
        [
            pyarrow.field(
                one.name,
                pyarrow.type_for_alias(one.type),
                metadata={"unit": one.unit, "meaning": one.meaning},
            )
            for one in table_columns
        ]
    )
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False), stream)
    return stream.getvalue()


def _csv(frame: pandas.DataFrame) -> bytes:
    return frame.to_csv(index=False, lineterminator="\n").encode("utf-8")
