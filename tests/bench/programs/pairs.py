# SPDX-License-Identifier: MIT
"""Runs a program of this folder for some rounds and prints which function calls which in it.

    python3 pairs.py ROUNDS PROGRAM.py [ARGUMENT...]

Only calls after announce() count. Each line is a caller and a callee, with a tab in between; the
outermost function of a thread has no caller. Resuming a generator or a coroutine is a call, as
in a stack.
"""
import functools
import itertools
import sys
import threading

import ready

HERE = sys._getframe().f_code.co_filename


class Pairs:
    def __init__(self):
        self.codes = set()  # (caller or None, callee)

    def begin(self):
        """Forget the imports and the rest of the start."""
        self.codes.clear()
        for frame in [sys._getframe(1)] + list(sys._current_frames().values()):
            self.add(frame)

    def add(self, frame):
        """Add the frame and its callers. The callers of a known pair are known, too: they were
        called before, or were there at the first call of a thread."""
        while frame is not None and frame.f_code.co_filename != HERE:
            caller = frame.f_back
            inside = caller is not None and caller.f_code.co_filename != HERE
            pair = (caller.f_code if inside else None, frame.f_code)
            if pair in self.codes:
                return
            self.codes.add(pair)
            frame = caller

    def profile(self, frame, event, _):
        if event == "call":
            self.add(frame)

    def names(self):
        return {(name_of(caller) if caller else "", name_of(callee))
                for caller, callee in self.codes}


def name_of(code):
    """As a profiler shows it. Code objects have co_qualname from 3.11 on."""
    return getattr(code, "co_qualname", code.co_name)


def run(path):
    with open(path) as source:
        code = compile(source.read(), path, "exec")
    exec(code, {"__name__": "__main__", "__file__": path})


def main():
    ready.rounds = functools.partial(itertools.repeat, None, int(sys.argv[1]))
    del sys.argv[:2]
    pairs = Pairs()
    ready.announce = pairs.begin
    threading.setprofile(pairs.profile)
    sys.setprofile(pairs.profile)
    try:
        run(sys.argv[0])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    for pair in sorted(pairs.names()):
        print("\t".join(pair))


main()
