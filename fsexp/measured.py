"""What a run measured: its records as rows of the tables, checked.

A value out of range, or a name that comes twice, makes the whole run unusable: a figure that might be another one's is
worse than none. What an older core did not send is None in the rows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from fsexp import fio

INT64_LIMIT = 2**63
SECTOR_BYTES = 512  # /proc/diskstats counts in these, whatever the device's own are
TICK_NS = 10_000_000  # /proc/stat counts in USER_HZ, 100 a second on x86
# Copies that btrfs keeps of each byte in a profile; of raid5 and raid6 it depends on the number of devices.
COPIES = {"single": 1, "dup": 2, "raid0": 1, "raid1": 2, "raid10": 2, "raid1c3": 3, "raid1c4": 4}
FILESYSTEM = "filesystem"


class Malformed(Exception):
    """run.json is not what it should be; the message says in what."""


def records_of(document: dict) -> list[dict]:
    """The records of a run.json. Raises Malformed where it has none."""
    records = document.get("records")
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Malformed("records is missing or of another type")
    return records


def lost(document: dict, phases: list[str]) -> str:
    """What of a good run's records is not there; empty when all are, from the first to the guest's own end."""
    records = records_of(document)
    if not records:
        return "it has no records"
    for number, record in enumerate(records):
        if record.get("seq") != number:
            return f"record {number} is numbered {record.get('seq')!r}: one was lost, repeated or moved"
    end = records[-1]
    if end.get("type") != "end" or end.get("status") != "ok" or end.get("records") != len(records):
        return f"its records are cut: number {len(records) - 1} is not the end of a good run"
    timed = {record.get("name") for record in records if record.get("type") == "phase"}
    absent = [phase for phase in phases if phase not in timed]
    return f"no record of the phase {absent[0]}" if absent else ""


def rows(document: dict) -> dict[str, list[dict]]:
    """Table -> its rows, without the run's keys. Raises Malformed."""
    return {table: list(_of(document, *described)) for table, described in _TABLES.items()}


def _of(document: dict, kind: str, key: tuple[str, ...], make: Callable[[dict, str], list[dict]]) -> list[dict]:
    """The rows of one type of record, which each name their phase and differ in `key`."""
    found, seen = [], set()
    for record in records_of(document):
        if record.get("type") != kind:
            continue
        names = tuple(record.get(name) for name in key)
        for name, value in zip(key, names, strict=True):
            if not isinstance(value, str):
                raise Malformed(f"a {kind} record without {name}")
        if key and names in seen:
            raise Malformed(f"two {kind} records of the phase {', '.join(map(repr, names))}")
        seen.add(names)
        found += make(record, f"of the phase {', '.join(map(repr, names))}" if key else f"of a {kind} record")
    return found


def _phase(record: dict, where: str) -> list[dict]:
    counts = _counts(record, ("elapsed_ns", "operations", "bytes", "errors"), where)
    return [{"phase": record["name"]} | counts | _requests(record, where) | _processor(record, where)]


def _requests(record: dict, where: str) -> dict[str, int | None]:
    """What the disk's devices did, all together; None where one of them, or the core, did not count."""
    columns = ("requests_read", "bytes_read", "requests_written", "bytes_written", "flushes")
    devices = _member(record, "disks", where)
    # bcache's own device hands its requests on to the two below, which count them again.
    counted = {name: value for name, value in devices.items() if not name.startswith("bcache")} or devices
    for name, value in counted.items():
        if not isinstance(value, list) or len(value) < len(columns) or not all(map(_is_whole, value)):
            raise Malformed(f"disks.{name} {where} is not five counts")
    totals = [_total([value[place] for value in counted.values()], where) for place in range(len(columns))]
    # brd counts nothing: its zeros are no measurement.
    if any(name.startswith("ram") and not any(value[:4]) for name, value in counted.items()):
        totals = [None] * len(columns)
    scales = (1, SECTOR_BYTES, 1, SECTOR_BYTES, 1)
    return {
        column: None if total is None else _checked(total * scale, column, where)
        for column, total, scale in zip(columns, totals, scales, strict=True)
    }


def _total(values: list[int], where: str) -> int | None:
    """Their sum; None where there are none, or one is -1: not counted."""
    if not values or any(value == -1 for value in values):
        return None
    return sum(_checked(value, "disks", where) for value in values)


def _processor(record: dict, where: str) -> dict[str, int | None]:
    ticks = _member(record, "stat", where)
    parts = {
        "user_ns": ("user", "nice"),
        "system_ns": ("system", "irq", "softirq"),
        "idle_ns": ("idle",),
        "iowait_ns": ("iowait",),
    }
    return {column: _time(ticks, names, where) for column, names in parts.items()}


def _time(ticks: dict, names: tuple[str, ...], where: str) -> int | None:
    values = [ticks.get(name) for name in names]
    if None in values:
        return None
    if not all(map(_is_whole, values)):
        raise Malformed(f"stat.{names[0]} {where} is not a count")
    # proc(5): the time spent waiting may go back.
    if names[0] in ("idle", "iowait") and values[0] < 0:
        return None
    return _checked(sum(values) * TICK_NS, f"stat.{names[0]}", where)


def _operations(record: dict, where: str) -> list[dict]:
    columns = ("count", "bytes", "p50_ns", "p90_ns", "p99_ns", "max_ns", "total_ns", "errors")
    return [{name: record[name] for name in ("phase", "operation")} | _counts(record, columns, where)]


def _command(record: dict, where: str) -> list[dict]:
    argv, status, phase = record.get("argv"), record.get("status"), record.get("phase") or ""
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise Malformed(f"argv {where} is no list of words")
    if not isinstance(phase, str):
        raise Malformed(f"phase {where} is no text")
    row = {"phase": phase, "argv": shlex.join(argv), "status": _checked(status, "status", where)}
    sizes = {name: record.get(name) for name in ("elapsed_ns", "output_bytes")}
    if sizes["output_bytes"] is None and isinstance(record.get("output"), str):
        sizes["output_bytes"] = len(record["output"].encode())
    return [row | {name: None if one is None else _checked(one, name, where) for name, one in sizes.items()}]


def _fio(record: dict, where: str) -> list[dict]:
    """What fio printed, where the command was one."""
    argv, output = record.get("argv"), record.get("output")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv) or not isinstance(output, str):
        return []  # _command says what is wrong
    if not fio.is_fio(argv):
        return []
    try:
        return [{"phase": record.get("phase") or ""} | row for row in fio.rows(output)]
    except ValueError as error:
        raise Malformed(f"{error} ({where[3:]})") from None


def _space(record: dict, where: str) -> list[dict]:
    """A row of the filesystem, and one for each kind and profile of btrfs."""
    statfs = ("block_bytes", "blocks", "free_blocks", "inodes", "free_inodes")
    counts = _counts(record, statfs, where)
    block_bytes, blocks = counts["block_bytes"], counts["blocks"]
    kinds = _kinds(record, where)
    raws = [one["raw_used_bytes"] for one in kinds]
    whole = {
        "kind": FILESYSTEM,
        "profile": None,
        "total_bytes": _checked(blocks * block_bytes, "blocks", where),
        "used_bytes": _checked((blocks - counts["free_blocks"]) * block_bytes, "free_blocks", where),
        "raw_used_bytes": sum(raws) if raws and None not in raws else None,
    }
    phase = {"phase": record["phase"]}
    return [phase | counts | whole, *(phase | dict.fromkeys(statfs) | kind for kind in kinds)]


def _kinds(record: dict, where: str) -> list[dict]:
    given = record.get("btrfs")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise Malformed(f"btrfs {where} is no list of objects")
    found, seen = [], set()
    for one in given:
        kind, profile = one.get("kind"), one.get("profile")
        if not isinstance(kind, str) or not isinstance(profile, str):
            raise Malformed(f"btrfs {where} has no kind or profile")
        if (kind, profile) in seen or kind == FILESYSTEM:
            raise Malformed(f"btrfs {where} has {kind}, {profile} twice")
        seen.add((kind, profile))
        sizes = _counts(one, ("total_bytes", "used_bytes"), f"of {kind} {where}")
        copies = COPIES.get(profile.lower())
        raw = None if copies is None else _checked(sizes["used_bytes"] * copies, "raw_used_bytes", where)
        found.append({"kind": kind, "profile": profile} | sizes | {"raw_used_bytes": raw})
    return found


# Table -> the type of its records, the members that name one of them, and what makes rows of it.
_TABLES = {
    "phases": ("phase", ("name",), _phase),
    "operations": ("operations", ("phase", "operation"), _operations),
    "commands": ("command", (), _command),
    "fio": ("command", (), _fio),
    "space": ("space", ("phase",), _space),
}


def _member(record: dict, name: str, where: str) -> dict:
    value = record.get(name)
    if value is not None and not isinstance(value, dict):
        raise Malformed(f"{name} {where} is no object")
    return value or {}


def _counts(record: dict, names: tuple[str, ...], where: str) -> dict[str, int]:
    return {name: _checked(record.get(name), name, where) for name in names}


def _checked(value: Any, name: str, where: str) -> int:
    if not _is_whole(value) or not 0 <= value < INT64_LIMIT:
        raise Malformed(f"{name} {where} is not a count")
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
