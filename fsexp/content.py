"""The content of a modelled file: which pieces of which patterns, never the bytes themselves.

A file that was written once is one piece; what was written over, cut or left out is pieces too, so that no file is too
large to model. The sum of a file is computed at the end, and once for all files of one content.
"""

from __future__ import annotations

import functools
import zlib

from fsexp import pattern

# (length, pattern, where in the pattern's 1 MiB it begins)
Piece = tuple[int, int, int]

_BASE = pattern.BASE_BYTES
# In these every byte is the same: they begin wherever one likes.
_UNIFORM = (pattern.Pattern.ZEROS, pattern.Pattern.ONES)


@functools.lru_cache(maxsize=65536)  # files share their pieces
def _piece(length: int, kind: int, start: int) -> Piece:
    return length, kind, 0 if kind in _UNIFORM else start % _BASE


@functools.lru_cache(maxsize=65536)
def _only(piece: Piece) -> tuple[Piece]:
    return (piece,)


class Content:
    """A file's bytes."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        # A list only where there are several: there may be a million files of one piece, or of the same.
        self._pieces: list[Piece] | tuple[Piece, ...] = ()

    def copy(self) -> Content:
        """The same bytes, to be changed apart."""
        made = Content()
        made.size = self.size
        made._pieces = self._pieces if isinstance(self._pieces, tuple) else list(self._pieces)
        return made

    def write(self, position: int, kind: int, seed: int, length: int) -> None:
        """What a write of a pattern at the position does."""
        if length == 0:
            return
        self._put(position, _piece(length, kind, pattern.start(seed)))

    def resize(self, size: int) -> None:
        """What truncate(2) does, in either direction."""
        if size > self.size:
            self._append(_piece(size - self.size, pattern.Pattern.ZEROS, 0))
        elif size < self.size:
            self._pieces = self._part(0, size) or ()
            self.size = size

    def crc32(self) -> int:
        """zlib's CRC-32 of all bytes."""
        return _crc32(tuple(self._pieces))

    def _append(self, piece: Piece) -> None:
        length, kind, start = piece
        self.size += length
        if not self._pieces:
            self._pieces = _only(piece)
            return
        if isinstance(self._pieces, tuple):
            self._pieces = list(self._pieces)
        before, kind_before, start_before = self._pieces[-1]
        if kind == kind_before and (kind in _UNIFORM or start == (start_before + before) % _BASE):
            piece = _piece(before + length, kind, start_before)
            self._pieces.pop()
        self._pieces.append(piece)

    def _put(self, position: int, piece: Piece) -> None:
        if position > self.size:
            self.resize(position)
        end = position + piece[0]
        if position == self.size:
            self._append(piece)
            return
        after = self._part(end, self.size) if end < self.size else []
        self.resize(position)
        for each in [piece, *after]:
            self._append(each)

    def _part(self, begin: int, end: int) -> list[Piece]:
        found, at = [], 0
        for length, kind, start in self._pieces:
            first, last = max(begin, at), min(end, at + length)
            if first < last:
                found.append(_piece(last - first, kind, start + first - at))
            at += length
        return found


@functools.lru_cache(maxsize=65536)
def _crc32(pieces: tuple[Piece, ...]) -> int:
    total = 0
    for length, kind, start in pieces:
        for data in pattern.pieces_from(kind, start, length):
            total = zlib.crc32(data, total)
    return total
