"""What the core writes into files: four patterns, which are the same bytes here as in vmimages/core/pattern.c.

A pattern is 1 MiB of bytes, repeated for ever; a seed says where a file begins in it. So the content of two files
differs, and yet a core that writes it computes nothing while it is timed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from enum import IntEnum

BASE_BYTES = 2**20

# xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016); the state
# it begins with is Marsaglia's.
_STATE = 88172645463325252
_MULTIPLIER = 0x2545F4914F6CDD1D
_MASK = 2**64 - 1

# A byte of the random pattern, modulo 32, picks a letter or a space: it compresses about as text does.
_LETTERS = b"etaoin shrdlu cmfwyp vbgkjqxz etaois\n"[:32]

# Odd, so that seeds that follow each other begin far apart; in steps of 64 bytes, so that 16,384 of them differ.
_SEED_STRIDE_BYTES = 40503 * 64


class Pattern(IntEnum):
    """The patterns, by their numbers in a stream of operations."""

    ZEROS = 0
    TEXT = 1
    RANDOM = 2
    ONES = 3  # the character "1"


def content(pattern: int, seed: int, length: int) -> bytes:
    """The bytes that a write of this pattern puts into a file."""
    return b"".join(pieces(pattern, seed, length))


def pieces(pattern: int, seed: int, length: int) -> Iterator[bytes]:
    """The same in pieces of at most 1 MiB, for a length that is not to be held in memory."""
    return pieces_from(pattern, start(seed), length)


def start(seed: int) -> int:
    """Where in the 1 MiB the content of this seed begins."""
    return seed * _SEED_STRIDE_BYTES % BASE_BYTES


def pieces_from(pattern: int, start: int, length: int) -> Iterator[bytes]:
    """As `pieces`, for content that begins there: also what is left of some that was written over."""
    base = _base(Pattern(pattern))
    if length <= BASE_BYTES - start:
        yield base[start : start + length]
        return
    turned = base[start:] + base[:start]
    for _ in range(length // BASE_BYTES):
        yield turned
    yield turned[: length % BASE_BYTES]


@functools.cache
def _base(pattern: Pattern) -> bytes:
    if pattern is Pattern.ZEROS:
        return bytes(BASE_BYTES)
    if pattern is Pattern.ONES:
        return b"1" * BASE_BYTES
    if pattern is Pattern.TEXT:
        return _base(Pattern.RANDOM).translate(bytes(_LETTERS[byte % 32] for byte in range(256)))
    return b"".join(_words())


def _words() -> Iterator[bytes]:
    state = _STATE
    for _ in range(BASE_BYTES // 8):
        state ^= state >> 12
        state ^= state << 25 & _MASK
        state ^= state >> 27
        yield (state * _MULTIPLIER & _MASK).to_bytes(8, "little")
