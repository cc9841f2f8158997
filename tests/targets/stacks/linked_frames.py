# SPDX-License-Identifier: MIT
"""Stacks with frames that an extension module linked from the C stack (frame_linker.c).

The arguments are the module's folder and what to do. "park" parks a thread for each kind of
executable, owner of the frame and place in the stack, and reports the names of each thread's
frames. With "fast N" chains with linked frames take turns for ever, N steps for each leaf. "fresh
N" does so with executables that are made and thrown away.
"""
import _thread
import functools
import os
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import frame_linker
import ready

HAS_OBJECTS = sys.version_info >= (3, 12)  # as executables; before, only code objects
read_end, write_end = os.pipe()
OWNERS = [0, 1, 2, 3] + ([4] if sys.version_info[:2] == (3, 14) else [])


class Compiled:
    def method(self):
        pass


def compiled():
    pass


def executables():
    """Pairs of an executable and its frame's name; None: it has no frame."""
    yield compiled.__code__, "compiled"
    if not HAS_OBJECTS:
        return
    yield time.sleep, "time.sleep"
    yield [].append, "list.append"
    yield str.join, "str.join"
    yield Compiled().method, "Compiled.method"
    yield ("translated", "/src/translated.pyx", 1234567), "translated"
    yield ("\u00fcbersetzt", "/src/\u20ac.pyx", 7), "\u00fcbersetzt"
    yield None, None
    yield Compiled(), "<Compiled>"
    yield object(), "<object>"
    yield ("too", "short"), "<tuple>"
    yield ("no", "line", "here"), "<tuple>"


def inner():
    os.read(read_end, 1)


def run(generator):
    for _ in generator:
        pass


def generate(function, *args):
    yield function(*args)


def on_top(executable, owner):
    frame_linker.park(executable, owner, read_end)


def in_the_middle(executable, owner):
    frame_linker.call(executable, owner, inner)


def twice_on_top(executable, owner):
    frame_linker.call(executable, owner, frame_linker.park, executable, owner, read_end)


def twice_inside(executable, owner):
    frame_linker.call(executable, owner, frame_linker.call, executable, owner, inner)


def above_a_generator(executable, owner):
    run(generate(frame_linker.park, executable, owner, read_end))


def below_a_generator(executable, owner):
    frame_linker.call(executable, owner, next, generate(inner))


# The frames of each situation above itself; "#" stands for the linked frame.
SITUATIONS = {
    on_top: "#",
    in_the_middle: "# inner",
    twice_on_top: "# #",
    twice_inside: "# # inner",
    above_a_generator: "run generate #",
    below_a_generator: "# generate inner",
}


def expected(situation, name):
    frames = [situation.__name__]
    for frame in SITUATIONS[situation].split():
        frames += [name] if frame == "#" else [frame]
    return [frame for frame in frames if frame]


def park():
    threads = []

    def begin(name, function, *args):
        def body():
            threads.append({"tid": ready.native_id(), "what": name[0], "names": name[1]})
            function(*args)

        _thread.start_new_thread(body, ())

    body_name = "park.<locals>.begin.<locals>.body" if sys.version_info >= (3, 11) else "body"
    wanted = 0
    for executable, name in executables():
        for owner in OWNERS:
            for situation in SITUATIONS:
                begin(("%s of %r, owner %d" % (situation.__name__, executable, owner),
                       [body_name] + expected(situation, name)),
                      situation, executable, owner)
                wanted += 1
    while len(threads) < wanted:
        time.sleep(0.001)
    alone = []
    for executable, name in executables():
        tid = frame_linker.thread(executable, 3 if HAS_OBJECTS else 0, read_end)
        alone.append({"tid": tid, "what": "nothing else but %r" % (executable,),
                      "names": [name] if name else []})
    ready.announce(threads=threads + alone)
    inner()


def chain(letter, executable, owner):
    """Two functions with a linked frame between them, and another on top, by turns."""

    def link(name):
        return (name + letter, "/src/%s.pyx" % letter, ord(letter)) if executable is tuple \
            else NAMED[name + letter].__code__

    middle, top = link("middle_"), link("top_")
    source = """
def low_{0}(): high_{0}()
def high_{0}(): call(middle, owner, leaf_{0})
def leaf_{0}():
    n = 0
    while n < steps:
        n += 1
    spin(top, owner, 40 * steps)
""".format(letter)
    names = {"call": frame_linker.call, "spin": frame_linker.spin, "middle": middle, "top": top,
             "owner": owner, "steps": int(sys.argv[3])}
    exec(compile(source, "chain", "exec"), names)
    return names["low_" + letter]


NAMED = {}
for _name in ("middle_a", "middle_b", "top_a", "top_b"):
    exec("def %s(): pass" % _name, NAMED)


def fast(kind, owner):
    a, b = chain("a", kind, owner), chain("b", kind, owner)
    ready.announce()
    alternate(a, b)


def alternate(a, b):
    while True:
        a()
        b()


def caller_0(*args):
    frame_linker.call(*args)


def caller_1(*args):
    frame_linker.call(*args)


def caller_2(*args):
    frame_linker.call(*args)


def work(steps):
    n = 0
    while n < steps:
        n += 1


def fresh(owner):
    steps = int(sys.argv[3])
    ready.announce()
    n = 1000000
    while True:
        executable = ("made_%d" % n, "/made/%d.pyx" % n, n)
        (caller_0, caller_1, caller_2)[n % 3](executable, owner, work, steps)
        del executable
        n += 1


if __name__ == "__main__":
    mode = sys.argv[2]
    owner = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    if mode == "park":
        park()
    elif mode == "fast-code":
        fast(None, owner)
    elif mode == "fast-tuple":
        fast(tuple, owner)
    else:
        fresh(owner)
