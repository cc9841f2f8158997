# SPDX-License-Identifier: MIT
"""The first line that every target prints: it has begun, and this is what it is."""
import json
import os
import sys
import threading


def announce(**facts):
    report = {
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "tid": threading.get_native_id(),
    }
    report.update(facts)
    print(json.dumps(report), flush=True)
