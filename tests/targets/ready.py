# SPDX-License-Identifier: MIT
"""The first line that every target prints: it has begun, and this is what it is."""
import json
import os
import sys
import _thread


def native_id():
    """The kernel's id of this thread; CPython tells it from 3.8 on."""
    if hasattr(_thread, "get_native_id"):
        return _thread.get_native_id()
    return int(os.readlink("/proc/thread-self").rpartition("/")[2])


def announce(**facts):
    report = {
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "tid": native_id(),
    }
    report.update(facts)
    print(json.dumps(report), flush=True)
