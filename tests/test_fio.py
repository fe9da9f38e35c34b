"""Against a real output of fio 3.33:

fio --name=seq --rw=write --size=4m --name=mixed --rw=randrw --bs=4k --size=2m --stonewall --fsync=16 --ioengine=sync
"""

from pathlib import Path

import pytest

from fsexp import fio

OUTPUT = Path(__file__).with_name("data").joinpath("fio.json").read_text()


def test_each_job_and_direction():
    found = fio.rows(OUTPUT)
    assert [(row["job"], row["direction"]) for row in found] == [
        ("seq", "write"), ("mixed", "read"), ("mixed", "write"),
    ]  # fmt: skip
    seq, *mixed = found
    assert (seq["requests"], seq["bytes"]) == (4 * 2**20 // 4096, 4 * 2**20)
    assert sum(row["bytes"] for row in mixed) == 2 * 2**20


def test_rates_are_requests_and_bytes_by_time():
    for row in fio.rows(OUTPUT):
        assert row["iops"] == pytest.approx(row["requests"] / row["runtime_ms"] * 1000)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(row["bytes"] / row["runtime_ms"] * 1000, abs=1)


def test_latencies_rise():
    for row in fio.rows(OUTPUT):
        assert 0 < row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"]


def test_warnings_may_stand_before_it():
    assert fio.rows("fio: a warning\n" + OUTPUT) == fio.rows(OUTPUT)


@pytest.mark.parametrize("output", ["", "fio: no such job", OUTPUT[:5000], "{}", '{"jobs": [{"jobname": "a"}]}'])
def test_what_is_no_report_is_said(output):
    with pytest.raises(ValueError, match="fio"):
        fio.rows(output)


def test_only_fio_that_prints_json_is_read():
    assert fio.is_fio(["/usr/bin/fio", "--output-format=json"])
    assert not fio.is_fio(["fio", "job.fio"])
    assert not fio.is_fio(["cat", "fio.json"])
