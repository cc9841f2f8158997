# SPDX-License-Identifier: MIT
"""Dies or stays in a situation: crash.py SITUATION[=NUMBER] END [ANYTHING]...

First a line of JSON gives the interpreter's own account of every thread, at the very moment of
the end: the last call of all, into C, has an argument that reports the truth when it is
converted, and no line of Python runs after that. Runs on CPython 3.6 and newer.
"""
import ctypes
import faulthandler
import functools
import gc
import importlib
import json
import mmap
import os
import signal
import sys
import threading
import time

import parking
from ready import native_id

BAD_ADDRESS = 0xBAD  # below vm.mmap_min_addr, where nothing is mapped

# ---- the truth ------------------------------------------------------------------------


def frames_of(frame):
    """[frame, number of equal frames in a row], outermost first."""
    runs = []
    while frame is not None:
        key = frame.f_code, frame.f_lasti
        if runs and runs[-1][0] == key:
            runs[-1][2] += 1
        else:
            runs.append([key, parking.described(frame), 1])
        frame = frame.f_back
    return [[description, nr] for _, description, nr in runs[::-1]]


def described(exception):
    return exception and {"type": type(exception).__name__, "message": str(exception)}


def exception_of(ident, handled):
    """The member for a thread's truth, if the exception is known."""
    return {"exception": described(handled[ident])} if ident in handled else {}


def handled_exceptions():
    """{ident: the exception that a thread handles}; before 3.10 only the calling thread's."""
    found = {threading.get_ident(): sys.exc_info()}
    found.update(getattr(sys, "_current_exceptions", dict)())
    return {ident: one[1] if isinstance(one, tuple) else one for ident, one in found.items()}


def threads_of(own_frame):
    frames = sys._current_frames()
    frames[threading.get_ident()] = own_frame
    handled = handled_exceptions()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    tids = parking.arrived()
    tids[threading.get_ident()] = native_id()
    return [
        dict(
            exception_of(ident, handled),
            tid=tids[ident],
            ident=ident,
            name=names[ident],
            main=ident == threading.main_thread().ident,
            frames=frames_of(frame),
        )
        for ident, frame in frames.items()
    ]


class LastWord:
    """A number that reports the truth when it is converted. holds_gil says whether the caller
    keeps the GIL once it has the number."""

    def __init__(self, number, holds_gil):
        self.number = int(number)
        self.holds_gil = holds_gil

    def __index__(self):
        print(json.dumps({
            "pid": os.getpid(),
            "python": sys.version.split()[0].rstrip("+"),
            "argv": getattr(sys, "orig_argv", sys.argv),
            "executable": os.path.realpath(sys.executable),
            "tid": native_id(),
            "parking": read_end,
            "holds_gil": self.holds_gil,
            "collects": collecting,
            "address": "0x%x" % BAD_ADDRESS,
            "threads": threads_of(sys._getframe(1)),
        }), flush=True)
        return self.number

    __int__ = __index__  # called by 3.7 and older
    _as_parameter_ = property(__index__)  # called by ctypes


read_end, write_end = os.pipe()
collecting = False

# signal.pthread_kill() and os.kill() keep the GIL during the call; the others do not.
ENDS = {
    "abort": lambda: functools.partial(signal.pthread_kill, threading.get_ident(),
                                       LastWord(signal.SIGABRT, True)),
    "quit": lambda: functools.partial(os.kill, os.getpid(), LastWord(signal.SIGQUIT, True)),
    "segv": lambda: functools.partial(ctypes.memset, BAD_ADDRESS, LastWord(0, False), 1),
    "raised_again": lambda: raised_again(),
    "park": lambda: functools.partial(os.read, read_end, LastWord(1, False)),
}


def raised_again():
    faulthandler.enable(file=os.open(os.devnull, os.O_WRONLY))
    return ENDS["segv"]()


# ---- situations -----------------------------------------------------------------------


def single(end):
    def second():
        return third(
            "some", "arguments",
        )

    def third(*_):
        return [0, end()]

    second()


def threads(end, count=50):
    start_parked(count, lambda: parking.park())
    end()


def start_parked(count, function):
    sys.setswitchinterval(1000)
    for number in range(count):
        threading.Thread(target=function, name="parked %d" % number, daemon=True).start()
    while len(parking.arrived()) < count:
        time.sleep(0.001)


def deep(end, depth=900):
    if depth:
        deep(end, depth - 1)
    else:
        end()


def far(end, depth=100000):
    """From 3.11 on, where a call of a Python function needs no C stack."""
    sys.setrecursionlimit(depth + 1000)
    deep(end, depth)


def overflow(end):
    """Up to 3.11, where each call needs C stack."""
    sys.setrecursionlimit(1 << 30)
    LastWord(0, True).__index__()
    overflow_again()


def overflow_again():
    functools.partial(overflow_again)()


def deep_in_c(_):
    """In code that calls itself and has moved the stack pointer when it writes."""
    LastWord(0, False).__index__()
    call_itself()


def thread_deep_in_c(_):
    LastWord(0, False).__index__()
    thread = threading.Thread(target=call_itself)
    thread.start()
    thread.join()


def call_itself():
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x48\x81\xec\x00\x10\x00\x00"  # sub $0x1000, %rsp
               b"\x48\x89\x04\x24"              # mov %rax, (%rsp)
               b"\xe8\xf0\xff\xff\xff")          # call the first one
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


MODULE = '''
class Класс:
    def метод(self, end):
        def ñandú(ÿ):
            "été"; 日本 = ["🐍", end()]

        ñandú(self)


def функция(end):
    (lambda 値: Класс().метод(値))(end)


def größe(end):
    return функция(end)
'''


def names(end):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "日本語 каталог")
    os.makedirs(folder)
    with open(os.path.join(folder, "модуль_🐍.py"), "w", encoding="utf-8") as file:
        file.write(MODULE)
    sys.path.insert(0, folder)
    threading.current_thread().name = "поток 線程 🐍"
    importlib.import_module("модуль_🐍").größe(end)


class Ошибка(LookupError):
    pass


class Secret:
    """Its contents must not be shown, least of all in the message of an exception."""

    def __init__(self):
        self.password = "hunter2"

    def __repr__(self):
        return "<Secret at 0x%x>" % id(self)


def handled(end):
    def handle_another():
        try:
            {}["missing"]
        except KeyError:
            parking.park()

    def handle_two_paths():
        try:
            raise OSError(2, "Not here", "from", None, "to")
        except OSError:
            parking.park()

    def handle_object():
        try:
            raise ValueError(Secret())
        except ValueError:
            parking.park()

    handlers = [handle_another, handle_two_paths, handle_object]
    start_parked(len(handlers), lambda: handlers.pop()())
    try:
        raise Ошибка("nothing there: 日本語 ñ")
    except LookupError:
        end()


def garbage(end):
    class Dying:
        def __del__(self):
            global collecting
            collecting = True
            end()

    gc.disable()
    dying = Dying()
    dying.itself = dying
    del dying
    gc.collect()


class Slotted:
    __slots__ = ("one", "two")


class Plain:
    def __init__(self):
        self.number, self.text = 1 << 40, "attribute"


def mixture(end):
    """A little of everything, and values of every kind."""
    first, also_first, third = [1, [2, (3, None)]], {"a": 1, "b": {2, 3}}, -(10 ** 40)
    fourth, fifth, sixth, seventh = 3.5, 1j, b"\0bytes\xff", bytearray(b"array")
    text, other_text, wide_text = "text", "t\xe9xt \u65e5\u672c", "\U0001f40d" * 50
    itself = [first]
    itself.append(itself)
    plain, slotted, kinds = Plain(), Slotted(), (Plain, len, sys, range(3), Ellipsis, True)
    slotted.one = frozenset("abc")
    cell = [first, also_first, third, fourth, fifth, sixth, seventh, text, other_text]

    def generate():
        handled(lambda: (cell, end()))
        yield

    next(generate())
    return wide_text, plain, kinds


def tasks(end):
    """asyncio: one task waits for another, a group waits for two, and one runs."""
    import asyncio

    async def sleep(name):
        await asyncio.sleep(3600)

    async def wait_for(task):
        return await asyncio.gather(task, sleep("gathered"))

    async def main():
        sleeper = asyncio.ensure_future(sleep("日本"))
        waiters = [asyncio.ensure_future(wait_for(sleeper)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        end()
        return waiters

    asyncio.new_event_loop().run_until_complete(main())


SITUATIONS = {function.__name__: function for function in (
    single, threads, deep, far, overflow, deep_in_c, thread_deep_in_c, names, handled, garbage,
    mixture, tasks)}

situation, _, number = sys.argv[1].partition("=")
SITUATIONS[situation](ENDS[sys.argv[2]](), *map(int, number.split()))
