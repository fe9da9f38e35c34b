"""The stream of records: whole, or nothing."""

import json
import zlib

from hypothesis import given
from hypothesis import strategies as st

from fsexp.vm import record

HELLO = {"seq": 0, "type": "hello", "format": 1}
PHASE = {"seq": 1, "type": "phase", "name": "create", "elapsed_ns": 5}
END = {"seq": 2, "type": "end", "status": "ok", "records": 3}
LINES = [record.seal(item) for item in (HELLO, PHASE, END)]
WHOLE = b"".join(LINES)


def test_seal_by_hand():
    body = b'{"seq":0,"type":"hello","format":1'
    assert LINES[0] == body + b',"crc32":"' + format(zlib.crc32(body), "08x").encode() + b'"}\n'


def test_whole():
    stream = record.parse(WHOLE)
    assert stream.whole
    assert stream.records == [HELLO, PHASE, END]
    assert stream.of("phase") == [PHASE]


@given(st.integers(0, len(WHOLE) - 1))
def test_cut_anywhere_is_not_whole(length):
    assert not record.parse(WHOLE[:length]).whole


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_one_changed_byte_anywhere_is_not_whole(at, change):
    data = bytearray(WHOLE)
    data[at] ^= change
    assert not record.parse(bytes(data)).whole


@given(st.integers(0, len(WHOLE)), st.binary(min_size=1, max_size=40))
def test_bytes_put_in_anywhere_are_not_whole(at, garbage):
    assert not record.parse(WHOLE[:at] + garbage + WHOLE[at:]).whole


@given(st.lists(st.sampled_from(LINES), max_size=6))
def test_only_the_right_order_is_whole(lines):
    assert record.parse(b"".join(lines)).whole == (lines == LINES)


@given(st.binary(max_size=300))
def test_never_raises(data):
    assert not record.parse(data).whole


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda k: k not in ("seq", "type", "crc32")),
        st.one_of(st.text(), st.integers(), st.lists(st.text(), max_size=3)),
        max_size=4,
    )
)
def test_any_text_survives(members):
    first = {"seq": 0, "type": "x", **members}
    stream = record.parse(record.seal(first) + record.seal({"seq": 1, "type": "end", "status": "ok", "records": 2}))
    assert stream.whole
    assert stream.records[0] == json.loads(json.dumps(first))


def test_faults_are_named():
    assert "numbered 2" in record.parse(LINES[0] + LINES[2]).fault
    assert "numbered 0" in record.parse(LINES[0] + LINES[0]).fault
    assert "after the end" in record.parse(WHOLE + LINES[0]).fault
    assert "cut after 10 bytes" in record.parse(LINES[0] + LINES[1][:10]).fault
    assert "counts 7" in record.parse(record.seal({"seq": 0, "type": "end", "records": 7})).fault
    assert record.parse(b"").fault is None


def test_depth_is_no_way_to_crash():
    body = b'{"seq":0,"type":' + b"[" * 100000
    line = body + b',"crc32":"%08x"}\n' % zlib.crc32(body)
    assert "not JSON" in record.parse(line).fault
