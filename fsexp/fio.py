"""What fio measured, from the JSON that it prints with --output-format=json."""

from __future__ import annotations

import json
from typing import Any

DIRECTIONS = ("read", "write", "trim")
# Column -> the percentile of the completion's latency as fio names it.
PERCENTILES = {"p50_ns": "50.000000", "p90_ns": "90.000000", "p99_ns": "99.000000"}


def is_fio(argv: list[str]) -> bool:
    """Whether the command is a fio that prints JSON."""
    return bool(argv) and argv[0].rsplit("/", 1)[-1] == "fio" and any("json" in word for word in argv[1:])


def rows(output: str) -> list[dict[str, Any]]:
    """A row for each job and direction in which it moved something, in fio's order.

    Raises ValueError where the output has no report, or one that ends early: a record keeps 64 KiB of it.
    """
    start = output.find("{")  # lines of warnings may come before
    if start < 0:
        raise ValueError("fio printed no JSON")
    try:
        report, _ = json.JSONDecoder().raw_decode(output, start)
    except json.JSONDecodeError as error:
        raise ValueError(f"fio's JSON is cut or damaged: {error}") from None
    try:
        return [
            _row(job["jobname"], direction, job[direction])
            for job in report["jobs"]
            for direction in DIRECTIONS
            if job[direction]["total_ios"]
        ]
    except (LookupError, TypeError) as error:
        raise ValueError(f"fio's JSON lacks what it should have: {error}") from None


def _row(job: str, direction: str, measured: dict[str, Any]) -> dict[str, Any]:
    percentiles = measured["clat_ns"].get("percentile", {})
    return {
        "job": job,
        "direction": direction,
        "requests": measured["total_ios"],
        "bytes": measured["io_bytes"],
        "runtime_ms": measured["runtime"],
        "iops": float(measured["iops"]),
        "bandwidth_bytes_per_s": measured["bw_bytes"],
        **{column: percentiles.get(name) for column, name in PERCENTILES.items()},
        "max_ns": measured["clat_ns"]["max"],
    }
