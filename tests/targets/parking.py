# SPDX-License-Identifier: MIT
"""Parks threads and reports the truth about where they are parked.

A situation is a function that calls its argument, park, once, somewhere. Each runs in
a thread of its own, and park never returns: it reads a pipe to which nothing is
written. When all threads are parked, a line of JSON gives the interpreter's own account
of every thread (sys._current_frames), which a profiler must match. Runs on CPython 3.6
and newer.

Every thread is in its final place when the truth is taken, without any waiting time:
park announces itself with the GIL held and releases it only inside read(2), because the
switch interval is too long for the GIL to be taken away.
"""
import functools
import itertools
import json
import os
import sys
import threading
import time
import traceback
import _thread

from ready import native_id

ENOUGH_TO_SPECIALIZE = 60

_read_end, _write_end = os.pipe()
_arrived = {}  # {ident: native id}


def arrived():
    """{ident: native id} of the parked threads."""
    return dict(_arrived)


class _Announcement:
    """The number 1, which os.read() asks for at the very last moment."""

    def __index__(self):
        _arrived[_thread.get_ident()] = native_id()
        return 1


# A partial object is called from C, so the frame that parks is the situation's own.
park = functools.partial(os.read, _read_end, _Announcement())


def warm(situation):
    """Parks in the situation after enough harmless runs for its code to be specialised."""

    @functools.wraps(situation)
    def after_warming_up(park):
        for _ in range(ENOUGH_TO_SPECIALIZE):
            situation(int)
        situation(park)

    return after_warming_up


def position_of(frame):
    """A frame's position in the source, from the positions of its code (3.11 and newer)."""
    code = frame.f_code
    positions = itertools.islice(code.co_positions() if hasattr(code, "co_positions") else (),
                                 max(frame.f_lasti, 0) // 2, None)
    _, end_line, column, end_column = next(positions, (None,) * 4)
    return {"column": column, "end_line": end_line, "end_column": end_column}


def described(frame):
    code = frame.f_code
    return dict(
        position_of(frame),
        name=getattr(code, "co_qualname", code.co_name),  # co_qualname: 3.11 and newer
        path=code.co_filename,
        line=frame.f_lineno or 0,
        first_line=code.co_firstlineno,
    )


def frames_of(frame):
    """The stack that ends in frame, outermost first."""
    frames = []
    while frame is not None:
        frames.append(described(frame))
        frame = frame.f_back
    return frames[::-1]


def _truth(names):
    frames = sys._current_frames()
    main = threading.main_thread().ident
    return [
        {
            "tid": tid,
            "situation": names.get(ident, "main"),
            "main": ident == main,
            "frames": frames_of(frames.get(ident)),
        }
        for ident, tid in _arrived.items()
    ]


def _monitor(nr_expected, names, before_report):
    while len(_arrived) < nr_expected:
        time.sleep(0.001)
    more = before_report() or {}
    report = dict(
        more,
        pid=os.getpid(),
        python=sys.version.split()[0].rstrip("+"),
        monitor=native_id(),
        threads=_truth(names),
    )
    print(json.dumps(report), flush=True)


def _fail(args):
    """End the process if a thread cannot park, so that nobody waits for its report."""
    traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
    os._exit(1)


def main(situations, raw_threads=(), in_main_thread=lambda park: park(),
         before_report=lambda: None, one_by_one=False):
    """Park every (name, situation) and every (name, function, args), then the main thread.

    The functions of raw_threads are started without threading.Thread and get no park: they end in
    parking.park by themselves. before_report is called when every thread is parked, and may
    return more of the report. one_by_one: a situation begins when the one before is parked.
    """
    sys.setswitchinterval(1000)
    threading.excepthook = _fail
    names = {}
    for name, situation in situations:
        thread = threading.Thread(target=situation, args=(park,), name=name, daemon=True)
        thread.start()
        names[thread.ident] = name
        while one_by_one and thread.ident not in _arrived:
            time.sleep(0.001)
    for name, function, args in raw_threads:
        names[_thread.start_new_thread(function, args)] = name
    _thread.start_new_thread(_monitor, (len(names) + 1, names, before_report))
    in_main_thread(park)


def numbered(function, numbers):
    """Situations that differ only in a number."""
    return [
        ("%s %d" % (function.__name__, number), functools.partial(function, number))
        for number in itertools.chain(numbers)
    ]
