"""A folder of output that appears whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield an empty folder beside `output`; it takes the place of `output` when the block ends well.

    After an exception the temporary folder is gone and `output` is as it was.
    """
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".new", dir=output.parent))
    try:
        fresh.chmod(0o755)  # mkdtemp makes it private, but results are read by other programs
        yield fresh
        _swap(fresh, output)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _swap(fresh: Path, output: Path) -> None:
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        fresh.replace(output)  # rename(2) replaces an empty folder in one step
        return
    old = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".old", dir=output.parent))
    output.replace(old)
    try:
        fresh.replace(output)
    except BaseException:
        old.replace(output)
        raise
    shutil.rmtree(old, ignore_errors=True)
