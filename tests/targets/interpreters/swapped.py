# SPDX-License-Identifier: MIT
"""alternating.py in a second interpreter that the main thread has made but another thread runs.
Up to 3.12 its thread state names the thread that made it. The two threads run on different CPUs,
if there are several."""
import os
import threading
import time

import subinterpreters

CODE = """\
import sys
sys.path.insert(0, {folder!r})
sys.argv = ["alternating", "calls", "40"]
import alternating
import ready
ready.announce()
alternating.alternate(*alternating.own_chains())
"""


def run_elsewhere(run, interpreter, cpu):
    os.sched_setaffinity(0, {cpu})
    run(interpreter, CODE.format(folder=os.path.dirname(os.path.abspath(__file__))))


def main():
    create, run = subinterpreters.interpreter_calls()
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[0]})
    threading.Thread(target=run_elsewhere, args=(run, create(), cpus[-1]), daemon=True).start()
    while True:
        time.sleep(0.01)  # takes the GIL, which the other interpreter then takes again


main()
