# SPDX-License-Identifier: MIT
"""Programs that register code with libunwind: libunwind_codes.c and runs_libunwind_codes.py in
tests/targets/jit."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest

import support

# The names of the functions in a Python target, which runs the last one.
NAMES = ["first", "a second name", "hot"]


def compiled(folder, *options):
    """Compile libunwind_codes.c and return the path. Skips the test where that is not possible."""
    if not shutil.which("cc"):
        raise unittest.SkipTest("cc is not installed")
    path = os.path.join(folder, "libunwind_codes")
    source = os.path.join(support.TARGETS, "jit", "libunwind_codes.c")
    done = subprocess.run(["cc", "-o", path, source, *options], capture_output=True, text=True)
    if "libunwind.h: No such file" in done.stderr:
        raise unittest.SkipTest("libunwind-dev is not installed")
    if done.returncode:
        raise AssertionError(done.stderr)
    return path


def interpreter():
    """The newest interpreter that can use this system's libraries."""
    ours = [found for found in support.supported_interpreters()
            if not found.root and support.version_key(found) >= [3, 12]]
    if not ours:
        raise unittest.SkipTest("needs CPython 3.12 or newer outside of a chroot")
    return max(ours, key=support.version_key)


@contextlib.contextmanager
def python_target(python):
    """A Python that has loaded a library whose list has no symbol."""
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder, "-shared", "-fPIC", "-lunwind")
        with support.python_target(python, "runs_libunwind_codes", library, *NAMES) as target:
            yield target


@contextlib.contextmanager
def static_program():
    """A program that waits, whose list has a symbol."""
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder, "-no-pie", "-Wl,-Bstatic", "-lunwind", "-Wl,-Bdynamic", "-llzma")
        with support.plain_target(program) as target:
            yield target
