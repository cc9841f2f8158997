# SPDX-License-Identifier: MIT
"""Threads of every kind and with every kind of name; runs on CPython 3.6 and newer.

The first line of JSON reports each thread's id and name, as known to the interpreter and to the
kernel. SIGUSR1 renames one of them, which the second line reports.
"""
import ctypes
import json
import os
import signal
import sys
import threading
import _thread

SYS_GETTID = {"x86_64": 186, "aarch64": 178}[os.uname().machine]
libc = ctypes.CDLL(None)
parking, keep_open = os.pipe()
arrived, arrive = os.pipe()

NAMES = [
    "a worker with a rather long name",
    "caf\u00e9 cr\u00e8me",
    "\u7dda\u7a0b \u03d1",
    "\U0001f600 on top",
    "tab\tand\nline; and colon",
    "lone \ud800 surrogate",
    "\u00e9" * 100,
    "x" * 300,
]

IN_SUB_INTERPRETER = """
import os, threading
threading.current_thread().name = "inside {number}"
os.write({arrive}, b".")
os.read({parking}, 1)
"""


def tid():
    return libc.syscall(SYS_GETTID)


def park(tids, name):
    tids[name] = tid()
    os.write(arrive, b".")
    os.read(parking, 1)


class Slotted(threading.Thread):
    """Its instances have more than a dict."""

    __slots__ = ("one", "two")


def interpreter_calls():
    """How this version makes an interpreter and runs text in one; None where it cannot (3.6)."""
    try:
        import _interpreters
        return _interpreters.create, _interpreters.exec
    except ImportError:
        pass
    try:
        import _xxsubinterpreters
    except ImportError:
        return None
    return _xxsubinterpreters.create, _xxsubinterpreters.run_string


def in_sub_interpreter(calls, number, tids):
    tids[number] = tid()
    create, run = calls
    run(create(), IN_SUB_INTERPRETER.format(number=number, arrive=arrive, parking=parking))


def start(tids, name, make=threading.Thread, **options):
    thread = make(target=park, args=(tids, name), name=name, **options)
    thread.daemon = True
    thread.start()
    return thread


def start_native():
    """A thread of C that Python never sees."""
    handle = ctypes.c_ulong()
    libc.sleep.argtypes = [ctypes.c_uint]
    if libc.pthread_create(ctypes.byref(handle), None, libc.sleep, ctypes.c_void_p(3600)):
        sys.exit("no native thread")


def main():
    tids, raw, subs = {}, {}, {}
    threads = [start(tids, name) for name in NAMES]
    threads.append(start(tids, "of a class of its own", Slotted))
    with_dict = start(tids, "with a dict")
    vars(with_dict)["another"] = 1
    renamed = start(tids, "before")
    renamed.name = "named after its start"
    unnamed = [_thread.start_new_thread(park, (raw, number)) for number in range(2)]
    calls = interpreter_calls()
    nr_subs = 2 if calls else 0
    for number in range(nr_subs):
        threading.Thread(target=in_sub_interpreter, args=(calls, number, subs),
                         name="around %d" % number, daemon=True).start()
    for _ in range(len(threads) + 2 + len(unnamed) + nr_subs):
        os.read(arrived, 1)
    tids[renamed.name] = tids.pop("before")
    start_native()
    report = {
        "pid": os.getpid(),
        "python": sys.version.split()[0].rstrip("+"),
        "main": tid(),
        "named": {tids[thread.name]: thread.name for thread in threading.enumerate()
                  if thread.name in tids},
        "unnamed": sorted(raw.values()),
        "subs": {subs[number]: "inside %d" % number for number in subs},
        "renamed": tids[renamed.name],
    }

    def rename(signum, frame):
        renamed.name = "renamed at last"
        print(json.dumps(renamed.name), flush=True)

    signal.signal(signal.SIGUSR1, rename)
    report["named"][tid()] = threading.main_thread().name
    print(json.dumps(report), flush=True)
    while True:
        os.read(parking, 1)


main()
