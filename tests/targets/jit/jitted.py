# SPDX-License-Identifier: MIT
"""Calls many functions of its own, and reports the names that perf's trampolines have for them.

    jitted.py             then waits, until SIGTERM ends it normally
    jitted.py fork        forks in between: the child reports, too, and both wait
    jitted.py loop        then runs a loop that a JIT compiles
    jitted.py executors   likewise, and reports what CPython's JIT has made of it
"""
import json
import os
import signal
import sys
import time

NR_FUNCTIONS = 300


def make(name):
    """Make a function of that name, call it once, and return its name in a jitdump."""
    space = {}
    exec(compile("def %s(x):\n    return x + 1\n" % name, "/made up/%s.py" % name, "exec"), space)
    space[name](1)
    return "py::%s:/made up/%s.py" % (name, name)


def make_all(prefix):
    return [make("%s_%d" % (prefix, i)) for i in range(NR_FUNCTIONS)]


def report(**what):
    os.write(1, (json.dumps(what) + "\n").encode())


def loop(rounds=-1):
    """Run this many rounds; without end if negative."""
    total = 0
    while rounds:
        for i in range(10000):
            total = (total + i * i) % 1000003
        rounds -= 1


def executors():
    """SHA-256 of the machine code of each executor of the loop."""
    import _opcode  # has get_executor() since 3.13
    import hashlib
    sums = []
    for offset in range(0, len(loop.__code__.co_code), 2):
        try:
            code = _opcode.get_executor(loop.__code__, offset).get_jit_code()
        except ValueError:
            continue
        sums.append(hashlib.sha256(code).hexdigest())
    return sums


def wait(parent=None):
    """A child ends when its parent is gone, however the parent ended."""
    while parent in (None, os.getppid()):
        time.sleep(0.01)


def main():
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    before = make_all("before")
    if how == "fork":
        reader, writer = os.pipe()
        parent = os.getpid()
        child = os.fork()
        if not child:
            os.write(writer, json.dumps(make_all("child")).encode() + b"\n")
            wait(parent)
            os._exit(0)
        with os.fdopen(reader) as file:
            theirs = json.loads(file.readline())
        time.sleep(0.05)  # the child's start time is known in hundredths of a second
        report(pid=os.getpid(), child=child, before=before, theirs=theirs,
               after=make_all("after"))
        try:
            wait()
        finally:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
    if how == "executors":
        loop(100)
        report(pid=os.getpid(), executors=executors())
        loop()
    report(pid=os.getpid(), before=before)
    if how == "loop":
        loop()
    wait()


main()
