# SPDX-License-Identifier: MIT
"""The first line of every target, which says that it has begun and what it is."""
import json
import os
import sys
import _thread

if sys.version_info >= (3, 8):
    native_id = _thread.get_native_id
else:
    import ctypes

    native_id = ctypes.PyDLL(None).gettid  # glibc 2.30; called with the GIL held


def announce(**facts):
    report = {
        "pid": os.getpid(),
        "python": sys.version.split()[0].rstrip("+"),
        "tid": native_id(),
    }
    report.update(facts)
    print(json.dumps(report), flush=True)
