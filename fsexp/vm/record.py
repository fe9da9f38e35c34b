"""The records a guest sends: one JSON object a line, numbered from 0, each with a checksum of its bytes.

A stream is whole or it is nothing: a line that was cut, garbled, repeated, lost or moved makes every figure in it
suspect, so none is given.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

_LINE = re.compile(rb'^(\{"seq":.*),"crc32":"([0-9a-f]{8})"\}$', re.DOTALL)


@dataclass(frozen=True)
class Stream:
    """What a guest's record port gave.

    records: the records in order, without their checksums, up to the first fault.
    fault: what is wrong with the bytes, or None where every byte belongs to a good record.
    ended: whether the last record is the guest's own `end`.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    fault: str | None = None
    ended: bool = False

    @property
    def whole(self) -> bool:
        """Whether figures may be taken from the records."""
        return self.fault is None and self.ended

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of one type, in order."""
        return [record for record in self.records if record["type"] == kind]


def seal(members: dict[str, Any]) -> bytes:
    """A record as the guest sends it, line feed included (for tests, and to keep the two ends honest)."""
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


def parse(data: bytes) -> Stream:
    """The stream in `data`. Never raises: what is wrong stands in `fault`."""
    records: list[dict[str, Any]] = []
    lines = data.split(b"\n")
    tail = lines.pop()
    for number, line in enumerate(lines):
        record, fault = _parse_line(line)
        if record is None:
            return Stream(records, f"record {number} is damaged: {fault}")
        if records and records[-1]["type"] == "end":
            return Stream(records, f"record {number} comes after the end")
        if record["seq"] != number:
            return Stream(records, f"record {number} is numbered {record['seq']}: one was lost, repeated or moved")
        records.append(record)
    if tail:
        return Stream(records, f"record {len(records)} is cut after {len(tail)} bytes")
    ended = bool(records) and records[-1]["type"] == "end"
    if ended and records[-1].get("records") != len(records):
        counted = records[-1].get("records")
        return Stream(records, f"the end counts {counted!r} records, and {len(records)} are here")
    return Stream(records, None, ended)


def _parse_line(line: bytes) -> tuple[dict[str, Any] | None, str]:
    match = _LINE.match(line)
    if match is None:
        return None, "no checksum where it belongs"
    body, crc = match.groups()
    if zlib.crc32(body) != int(crc, 16):
        return None, "the checksum does not match"
    try:
        record = json.loads(body + b"}")
    except (ValueError, RecursionError):
        return None, "it is not JSON"
    if not isinstance(record.get("seq"), int) or isinstance(record["seq"], bool):
        return None, "its number is not a number"
    if not isinstance(record.get("type"), str):
        return None, "it has no type"
    return record, ""
