# SPDX-License-Identifier: MIT
"""Works for as many ms as argv says, and ends. With the second argument "children", a child that it
forks does so before, and then one that it starts with this script.

Each appends to a file beside this one: what it is, its process id, and CLOCK_MONOTONIC in ns at its
first instruction and when it has worked.

Possible stacks: <module>, and what follows it.
"""
import os
import sys
import time

BEGIN_NS = time.monotonic_ns()  # what was imported above, the interpreter has loaded before


def work(what, begin_ns, milliseconds):
    until_ns = time.monotonic_ns() + milliseconds * 1000000
    while time.monotonic_ns() < until_ns:
        for _ in range(100):
            pass
    end_ns = time.monotonic_ns()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "brief.times")
    with open(path, "a", encoding="ascii") as file:
        file.write("%s %d %d %d\n" % (what, os.getpid(), begin_ns, end_ns))


def fork(milliseconds):
    if not os.fork():
        work("fork", time.monotonic_ns(), milliseconds)
        os._exit(0)
    os.wait()


def run(milliseconds):
    import subprocess  # after the first instruction, because it takes 10 ms
    subprocess.run([sys.executable, "-B", os.path.abspath(__file__), str(milliseconds),
                    "subprocess"], check=True)


def main():
    milliseconds = int(sys.argv[1])
    what = sys.argv[2] if len(sys.argv) > 2 else "script"
    if what == "children":
        fork(milliseconds)
        run(milliseconds)
    work("script" if what == "children" else what, BEGIN_NS, milliseconds)


main()
