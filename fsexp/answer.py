"""An experiment's answer in sentences, made from its figures and from nothing else."""

from fsexp import display
from fsexp.clock import Clock
from fsexp.grid import Grid

# What a phase does, as the beginning of a sentence; another phase is called by its name.
TASKS = {
    "create": "Creating",
    "delete": "Deleting",
    "unlink": "Deleting",
    "rename": "Renaming",
    "read": "Reading",
}
# Parameters that say how many of what a task is done to: parameter, one, several.
COUNTED = {"nfiles": ("file", "files")}
# With more kernels than this a sentence gives the extremes instead of each.
KERNELS_NAMED = 3


def sentences(grid: Grid, parameters: dict, clock: Clock) -> list[str]:
    """One sentence a phase and comparison; plain text, not escaped."""
    answers = []
    for phase in grid.phases:
        task = _task(phase, parameters)
        pairs = [(column, grid.reference(column)) for column in grid.columns]
        against = [(column, base) for column, base in pairs if base in grid.columns]
        if against:
            answers += [_columns(grid, phase, task, clock, *pair) for pair in against]
        else:
            answers += [_kernels(grid, phase, task, clock, column) for column in grid.columns]
    return answers


def _task(phase: str, parameters: dict) -> str:
    if phase not in TASKS:
        return f"The phase {phase}"
    for parameter, (one, several) in COUNTED.items():
        if parameter in parameters:
            number = parameters[parameter]
            return f"{TASKS[phase]} {display.quantity(number)} {one if number == 1 else several}"
    return f"{TASKS[phase]} the files"


def _columns(grid: Grid, phase: str, task: str, clock: Clock, column: tuple, base: tuple) -> str:
    """One column against its reference, for every kernel."""
    name, base_name = grid.label(column), grid.label(base)
    known, unknown = [], []
    for kernel in grid.kernels:
        ratio = grid.between((kernel, column), (kernel, base), phase)
        if ratio is None:
            unknown.append((kernel, _why(grid, phase, [(kernel, column), (kernel, base)])))
        else:
            known.append((ratio, kernel))
    head = f"{task} takes"
    tail = _not_measured(unknown)
    if not known:
        return f"{task} on {name} against {base_name}: {tail}."
    if len(known) > KERNELS_NAMED:
        low, high = min(known), max(known)
        text = (
            f"{head} between {display.times(low[0])} (with {low[1]}) and "
            f"{display.times(high[0])} (with {high[1]}) times as long on {name} as on "
            f"{base_name}, over {len(known)} kernels ({clock.noun})"
        )
    else:
        parts = []
        for ratio, kernel in known:
            long = f" times as long on {name} as on {base_name}" if not parts else " times"
            values = [display.seconds(grid.figures[kernel, one, phase].median_s) for one in (column, base)]
            unit = f", {clock.noun}" if not parts else ""
            parts.append(f"{display.times(ratio)}{long} with {kernel} ({values[0]} s against {values[1]} s{unit})")
        text = f"{head} {'; '.join(parts)}"
    return f"{text}; {tail}." if tail else f"{text}."


def _kernels(grid: Grid, phase: str, task: str, clock: Clock, column: tuple) -> str:
    """One column by itself: every kernel against the first."""
    name, first = grid.label(column), grid.kernels[0]
    known, unknown = [], []
    for kernel in grid.kernels:
        figure = grid.figures.get((kernel, column, phase))
        if figure is None or figure.summary is None:
            unknown.append((kernel, _why(grid, phase, [(kernel, column)])))
        else:
            known.append(kernel)
    tail = _not_measured(unknown)
    if not known:
        return f"{task} on {name}: {tail}."
    parts = []
    for kernel in known:
        value = display.seconds(grid.figures[kernel, column, phase].median_s)
        unit = f" ({clock.noun})" if not parts else ""
        ratio = grid.to_first_kernel(kernel, column, phase)
        than = f", {display.times(ratio)} times {first}" if ratio and kernel != first else ""
        parts.append(f"{value} s with {kernel}{than}{unit}")
    text = f"{task} on {name} takes {'; '.join(parts)}"
    return f"{text}; {tail}." if tail else f"{text}."


def _why(grid: Grid, phase: str, cells: list[tuple]) -> str:
    """Why a comparison is not there: the outcomes of the cells without a figure."""
    reasons = []
    for kernel, column in cells:
        figure = grid.figures.get((kernel, column, phase))
        if figure is None:
            reasons.append(f"{grid.label(column)}: not planned")
        elif figure.summary is None:
            reasons.append(f"{grid.label(column)}: {figure.word}")
    return ", ".join(reasons) or "a time of 0"


def _not_measured(unknown: list[tuple[str, str]]) -> str:
    if not unknown:
        return ""
    return "not measured with " + ", ".join(f"{kernel} ({why})" for kernel, why in unknown)
