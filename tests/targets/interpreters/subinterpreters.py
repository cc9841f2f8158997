# SPDX-License-Identifier: MIT
"""Three sub-interpreters, each with a function that is parked in a thread of its own.

A sub-interpreter reports its place on the very line on which it parks, so that its report is what
a profiler sees.
"""
import json
import os
import threading

import ready

CODE = """\
import json, os, _thread, sys

def frames(frame):
    while frame is not None:
        code = frame.f_code
        yield {{"name": getattr(code, "co_qualname", code.co_name), "path": code.co_filename,
               "line": frame.f_lineno, "first_line": code.co_firstlineno}}
        frame = frame.f_back

def announce(frame):
    truth = {{"tid": _thread.get_native_id(), "main": False, "situation": "sub-interpreter {n}",
             "frames": list(frames(frame))[::-1]}}
    os.write({to_main}, json.dumps(truth).encode() + b"\\n")

def parked_{n}():
    announce(sys._getframe()), os.read({parking}, 1)

def called_{n}():
    return parked_{n}()

called_{n}()
"""


def interpreter_calls():
    """How this version makes an interpreter, and how it runs text in one."""
    try:
        import _interpreters
    except ImportError:
        import _xxsubinterpreters
        return _xxsubinterpreters.create, _xxsubinterpreters.run_string
    return _interpreters.create, _interpreters.exec


def park(parking):
    os.read(parking, 1)


def main():
    create, run = interpreter_calls()

    def run_in_new_interpreter(code):
        # Made by the thread that uses it: up to 3.12 its thread state is the maker's.
        run(create(), code)

    from_subs, to_main = os.pipe()
    parking, _keep_open = os.pipe()
    for n in range(3):
        code = CODE.format(n=n, to_main=to_main, parking=parking)
        threading.Thread(target=run_in_new_interpreter, args=(code,), daemon=True).start()
    with open(from_subs, encoding="ascii", closefd=False) as pipe:
        threads = [json.loads(pipe.readline()) for _ in range(3)]
    ready.announce(threads=threads, parking=parking)
    park(parking)


if __name__ == "__main__":
    main()
