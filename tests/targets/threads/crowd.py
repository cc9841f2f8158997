# SPDX-License-Identifier: MIT
"""One thread that runs beside many that wait. The argument is how many."""
import sys
import threading

import ready

everybody_is_here = threading.Barrier(int(sys.argv[1]) + 1)
nobody_sets_it = threading.Event()


def wait():
    everybody_is_here.wait()
    nobody_sets_it.wait()


def run():
    while True:
        sum(range(1000))


threading.stack_size(256 << 10)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=wait, daemon=True).start()
everybody_is_here.wait()
ready.announce()
run()
