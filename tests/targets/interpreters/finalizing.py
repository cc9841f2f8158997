# SPDX-License-Identifier: MIT
"""Comes to its end and stays in the __del__ of one of its variables, which reports whether the
interpreter is finalizing."""
import json
import os
import sys

from ready import native_id

read_end, write_end = os.pipe()
facts = {"pid": os.getpid(), "python": sys.version.split()[0].rstrip("+"), "tid": native_id()}
lines = [json.dumps(dict(facts, finalizing=finalizing)).encode() + b"\n"
         for finalizing in (False, True)]


class Last:
    # What it needs may be gone then, but not what it holds.
    def __del__(self, is_finalizing=sys.is_finalizing, write=os.write, read=os.read, lines=lines,
                end=read_end):
        write(1, lines[is_finalizing()])
        read(end, 1)


last = Last()
