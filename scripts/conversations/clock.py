"""The fixed clock: a small library that is loaded before libc and stops the calendar.

Debian's libfaketime 0.9.10 doesn't do: it makes `time.sleep` of Python 3.11 fail with `EINVAL`, and
it leaves files in /dev/shm. This library needs only a C compiler, which building Rust needs anyway.
"""

import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
# 2040-01-02T03:04:05Z. It is in the future so that files look old to jp: its cache of file states
# ignores files that were changed a moment ago.
START = 2_209_086_245


def build_clock(directory):
    """Compiles the library into `directory` and returns its path."""
    library = directory / "clock.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return library


def conversation_id(seconds=0):
    """Returns the id that jp gives to a conversation that starts so many seconds after `START`."""
    return str((START + seconds) * 10)
