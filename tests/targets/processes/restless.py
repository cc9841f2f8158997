# SPDX-License-Identifier: MIT
"""Forks, runs programs and starts threads all the time."""
import os
import subprocess
import sys
import threading

import ready


def spin(nr):
    while nr:
        nr -= 1


def forever(function):
    while True:
        function()


def fork():
    pid = os.fork()
    if not pid:
        spin(1000)
        os._exit(0)
    os.waitpid(pid, 0)


def run_program():
    subprocess.call(["true"])


def run_python():
    subprocess.call([sys.executable, "-S", "-c", "pass"])


def start_thread():
    thread = threading.Thread(target=spin, args=(2000,))
    thread.start()
    thread.join()


for work in (fork, run_program, run_python, start_thread, start_thread):
    threading.Thread(target=forever, args=(work,), daemon=True).start()
ready.announce()
forever(lambda: spin(1000))
