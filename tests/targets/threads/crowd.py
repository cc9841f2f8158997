# SPDX-License-Identifier: MIT
"""Threads that run beside many that wait. The arguments are how many wait and how many run (1)."""
import sys
import threading

import ready

nr_waiting, nr_running = int(sys.argv[1]), int((sys.argv + [1])[2])
everybody_is_here = threading.Barrier(nr_waiting + 1)
nobody_sets_it = threading.Event()


def wait():
    everybody_is_here.wait()
    nobody_sets_it.wait()


def run():
    while True:
        sum(range(1000))


threading.stack_size(256 << 10)
for _ in range(nr_waiting):
    threading.Thread(target=wait, daemon=True).start()
everybody_is_here.wait()
for _ in range(nr_running - 1):
    threading.Thread(target=run, daemon=True).start()
ready.announce()
run()
