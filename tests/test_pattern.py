"""The patterns of files' contents."""

import zlib

import pytest

from fsexp.pattern import BASE_BYTES, Pattern, content, pieces


def test_zeros_and_ones():
    assert content(Pattern.ZEROS, 7, 5) == b"\0\0\0\0\0"
    assert content(Pattern.ONES, 7, 5) == b"11111"


def test_random_is_the_published_generator():
    # One step from 0x139408DCBBF7A44: >> 12 gives 0x1395319C363C1B3, << 25 gives 0x32BF949AA563C1B3, >> 27 gives
    # 0x32BF949CF29152E7; that times 0x2545F4914F6CDD1D, modulo 2^64, is 0xE6A7A1EA317BCF2B.
    assert content(Pattern.RANDOM, 0, 8) == bytes.fromhex("2bcf7b31eaa1a7e6")


def test_random_does_not_compress():
    assert len(zlib.compress(content(Pattern.RANDOM, 0, BASE_BYTES))) > BASE_BYTES


def test_text_compresses_as_text_does():
    data = content(Pattern.TEXT, 0, BASE_BYTES)
    assert set(data) == set(b"abcdefghijklmnopqrstuvwxyz ")
    assert 0.4 < len(zlib.compress(data)) / BASE_BYTES < 0.7


def test_text_is_the_random_bytes_by_letters():
    random = content(Pattern.RANDOM, 3, 100)
    assert content(Pattern.TEXT, 3, 100) == bytes(b"etaoin shrdlu cmfwyp vbgkjqxz et"[byte % 32] for byte in random)


@pytest.mark.parametrize("seed", [0, 1, 16383, 16384, 2**64 - 1])
def test_a_seed_turns_the_base(seed):
    base = content(Pattern.RANDOM, 0, BASE_BYTES)
    start = seed * 40503 * 64 % BASE_BYTES
    assert content(Pattern.RANDOM, seed, 1000) == (base + base)[start : start + 1000]


def test_seeds_that_follow_each_other_differ():
    assert len({content(Pattern.TEXT, seed, 64) for seed in range(16384)}) == 16384


@pytest.mark.parametrize("length", [0, 1, BASE_BYTES - 1, BASE_BYTES, BASE_BYTES + 1, 2 * BASE_BYTES + 17])
def test_it_repeats(length):
    data = content(Pattern.RANDOM, 5, length)
    assert len(data) == length
    assert data[BASE_BYTES:] == data[: max(length - BASE_BYTES, 0)]
    assert b"".join(pieces(Pattern.RANDOM, 5, length)) == data
    assert all(len(piece) <= BASE_BYTES for piece in pieces(Pattern.RANDOM, 5, length))


def test_an_unknown_pattern_is_refused():
    with pytest.raises(ValueError, match="4"):
        content(4, 0, 1)
