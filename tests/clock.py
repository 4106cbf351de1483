"""A wall clock that a test can set, for the processes that load `clock.c`."""

import shutil
import struct
import subprocess
from pathlib import Path

CLOCK_SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clock of a few processes, which can be set (`clock.c`)."""

    def __init__(self, file: Path, library: Path | None) -> None:
        self._file = file
        self.library = library
        file.write_bytes(bytes(8))

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process read this clock."""
        if self.library is None:
            return {}
        return {"LD_PRELOAD": str(self.library), "SOAK_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """How far the clock is ahead of the true time; negative: behind."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", seconds))


def build_clock(folder: Path) -> Path | None:
    """The library of `clock.c`; None without a C compiler, and then no clock is set."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "clock.so"
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([compiler, *flags, "-o", library, CLOCK_SOURCE], check=True)
    return library
