# SPDX-License-Identifier: MIT
"""Hangs in one of several ways: hangs.py WAY. The report says who waits for whom."""
import ctypes
import fcntl
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import ready

PDEATHSIG = 1  # PR_SET_PDEATHSIG


def tie_to_parent():
    """Children end with the process that started them, however that ends."""
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)


def start(function, *args, name=None):
    """Start a thread. Returns its id."""
    begun = queue.Queue()

    def run():
        begun.put(ready.native_id())
        function(*args)

    threading.Thread(target=run, name=name, daemon=True).start()
    return begun.get()


def take_both(first, second, meeting):
    with first:
        meeting.wait()
        with second:
            pass


def lock_with(lock):
    with lock:
        pass


def hold_and_call(lock, held, call):
    with lock:
        held.set()
        call()


def lock_by_call(lock):
    lock.acquire()


def two_locks(kind):
    """Threads A and B have each other's lock; C waits for A's."""
    a, b, meeting = kind(), kind(), threading.Barrier(3)
    tid_a = start(take_both, a, b, meeting, name="A")
    tid_b = start(take_both, b, a, meeting, name="B")
    meeting.wait()
    tid_c = start(lock_by_call, a, name="C")
    return {"holders": {tid_a: tid_b, tid_b: tid_a, tid_c: tid_a}, "deadlock": [tid_a, tid_b]}


def one_lock_twice():
    """A thread waits for a Lock that it holds."""
    lock = threading.Lock()

    def take_twice():
        with lock:
            with lock:
                pass

    tid = start(take_twice, name="A")
    return {"holders": {tid: tid}, "deadlock": [tid]}


def twenty_deadlocks():
    """More than people read."""
    threads = [one_lock_twice() for _ in range(20)]
    return {"holders": {tid: tid for thread in threads for tid in thread["holders"]},
            "deadlock": []}


def held_in_a_wait():
    """Threads hold a Lock while they wait for an event, a queue, and a condition of another lock."""
    condition = threading.Condition()

    def wait_for_condition():
        with condition:
            condition.wait()

    holders = {}
    for name, wait in (("event", threading.Event().wait), ("queue", queue.Queue().get),
                       ("condition", wait_for_condition)):
        lock, held = threading.Lock(), threading.Event()
        holder = start(hold_and_call, lock, held, wait, name=name)
        held.wait()
        holders[start(lock_with, lock, name="waiter")] = holder
    return {"holders": holders, "deadlock": []}


def released_inside():
    """A thread that released a Lock inside its `with` statement waits for it; another one has taken
    it."""
    lock, released, taken = threading.Lock(), threading.Event(), threading.Event()

    def release_and_take():
        with lock:
            lock.release()
            released.set()
            taken.wait()
            lock.acquire()

    def take():
        released.wait()
        lock.acquire()
        taken.set()
        time.sleep(3600)

    tid = start(release_and_take, name="A")
    start(take, name="B")
    return {"holders": {tid: tid}, "deadlock": [tid]}


def unknown_holders():
    """Locks that were acquired, and a condition whose waiters have given up its lock, do not say who
    holds them."""
    lock, mutex = threading.Lock(), threading.Lock()
    condition = threading.Condition(mutex)

    held, waiting = threading.Event(), threading.Event()

    def hold():
        lock.acquire()
        held.set()
        time.sleep(3600)

    def wait_for_condition():
        with mutex:
            waiting.set()
            condition.wait()

    start(hold)
    start(wait_for_condition)
    held.wait()
    waiting.wait()
    mutex.acquire()  # succeeds once the condition is waited for
    waiters = [start(lock_with, lock), start(lock_with, mutex)]
    return {"holders": {tid: None for tid in waiters}, "deadlock": []}


def processes_take(first, second, meeting):
    tie_to_parent()
    take_both(first, second, meeting)


def processes_lock(lock):
    tie_to_parent()
    lock_with(lock)


def processes(kind):
    """Two processes have each other's lock, and a third waits for the first one's."""
    a, b, meeting = kind(), kind(), multiprocessing.Barrier(3)
    pair = [multiprocessing.Process(target=processes_take, args=(*locks, meeting))
            for locks in ((a, b), (b, a))]
    for process in pair:
        process.start()
    meeting.wait()
    third = multiprocessing.Process(target=processes_lock, args=(a,))
    third.start()
    first, second = (process.pid for process in pair)
    return {"holders": {first: second, second: first, third.pid: first},
            "deadlock": [first, second], "join": third}


def forked():
    """A child, by a bare fork, waits for the lock that its parent holds, as its copy says that it
    does itself."""
    lock, pids = multiprocessing.Lock(), queue.Queue()

    def hold():
        with lock:
            pid = os.fork()
            if not pid:
                tie_to_parent()
                lock_with(lock)
            pids.put(pid)
            time.sleep(3600)

    tid = start(hold, name="holder")
    return {"holders": {pids.get(): tid}, "deadlock": []}


def pool():
    """Six threads wait for one of two connections, which two others keep."""
    connections = threading.BoundedSemaphore(2)

    def use_connection():
        with connections:
            time.sleep(3600)

    users = [start(use_connection, name="user-%d" % number) for number in range(8)]
    return {"users": users, "holders": {}, "deadlock": []}


def silent_server():
    """A server accepts, and never answers."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    tid = start(client.recv, 1, name="client")
    return {"tid_of_client": tid, "holders": {}, "deadlock": [], "keep": [server, accepted],
            "ends": ["%s:%d" % client.getsockname(), "%s:%d" % server.getsockname()]}


def poll():
    """One thread looks again and again for what never comes, at the same line."""
    def look():
        while True:
            time.sleep(0.01)

    return {"tid_of_poller": start(look, name="poller"), "holders": {}, "deadlock": []}


def fork_with(lock):
    """Start a child that calls lock() and keeps what it has locked. Returns its id."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        tie_to_parent()
        lock()
        os.write(writer, b"x")
        time.sleep(3600)
    os.read(reader, 1)
    return pid


def file_locks():
    """Locks of both kinds on one file, and on bytes that nobody waits for."""
    file = tempfile.NamedTemporaryFile()
    opened = []  # a process that closes a file gives up its locks

    def lock_bytes(first):
        opened.append(open(file.name, "r+"))
        fcntl.lockf(opened[-1], fcntl.LOCK_EX, 10, first)

    def lock_file():
        opened.append(open(file.name, "r+"))
        fcntl.flock(opened[-1], fcntl.LOCK_EX)

    holders = [fork_with(lambda: lock_bytes(0)), fork_with(lambda: lock_bytes(100)),
               fork_with(lock_file)]
    lock_bytes(200)
    waiters = {start(lock_bytes, 105): holders[1], start(lock_file): holders[2]}
    return {"waiters": waiters, "holders": {}, "deadlock": [], "keep": [file, opened]}


def pipe_and_child():
    """One thread reads what a program never writes, another waits for the end of one."""
    program = subprocess.Popen(["sleep", "3600"], stdout=subprocess.PIPE, preexec_fn=tie_to_parent)
    other = subprocess.Popen(["sleep", "3600"], preexec_fn=tie_to_parent)
    return {"reader": start(program.stdout.read), "writer": program.pid,
            "waiter": start(other.wait), "child": other.pid, "holders": {}, "deadlock": []}


WAYS = {
    "locks": lambda: two_locks(threading.Lock),
    "rlocks": lambda: two_locks(threading.RLock),
    "twice": one_lock_twice,
    "twenty": twenty_deadlocks,
    "held_in_a_wait": held_in_a_wait,
    "released": released_inside,
    "unknown": unknown_holders,
    "processes": lambda: processes(multiprocessing.Lock),
    "recursive_processes": lambda: processes(multiprocessing.RLock),
    "forked": forked,
    "poll": poll,
    "file_locks": file_locks,
    "pool": pool,
    "socket": silent_server,
    "children": pipe_and_child,
}

if __name__ == "__main__":
    if sys.argv[1].endswith("processes"):
        multiprocessing.set_start_method("fork")
    facts = WAYS[sys.argv[1]]()
    kept = facts.pop("keep", None)
    joined = facts.pop("join", None)
    ready.announce(**facts)
    if joined:
        joined.join()
    time.sleep(3600)
