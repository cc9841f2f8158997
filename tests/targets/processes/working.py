# SPDX-License-Identifier: MIT
"""Works in work() as long as FOLDER has a file GO: working.py FOLDER LABEL GO.

FOLDER/LABEL-PID.json says what it is when it begins, and the CPU time it has used when it ends."""
import json
import os
import sys


def report(folder, label, **facts):
    facts.update(label=label, pid=os.getpid())
    path = os.path.join(folder, "%s-%d.json" % (label, os.getpid()))
    with open(path + ".new", "w", encoding="ascii") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)


def work(folder, label, go="go", **facts):
    facts.setdefault("parent", os.getppid())
    report(folder, label, **facts)
    while os.path.exists(os.path.join(folder, go)):
        sum(range(1000))
    report(folder, label, cpu_s=sum(os.times()[:2]), **facts)


if __name__ == "__main__":
    work(*sys.argv[1:])
