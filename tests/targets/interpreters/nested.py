# SPDX-License-Identifier: MIT
"""Reports where it is, as a Python literal, and stays there. Runs on every CPython, without any
module that is not built in."""
import os
import sys

read_end = os.pipe()[0]


def truth(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.insert(0, {"name": code.co_name, "path": code.co_filename,
                          "line": frame.f_lineno, "first_line": code.co_firstlineno})
        frame = frame.f_back
    return {"python": sys.version.split()[0].rstrip("+"), "parking": read_end, "frames": frames}


def announce(report):
    os.write(1, (repr(report) + "\n").encode())


def park(depth):
    if depth:
        return park(depth - 1)
    return announce(truth(sys._getframe())) or os.read(read_end, 1)


park(3)
