# SPDX-License-Identifier: MIT
"""Works (working.py) beside processes that it starts in one of several ways: workers.py WAY FOLDER.
It ends after them, unless they are daemons."""
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import time

from working import report, work

HERE = os.path.dirname(os.path.abspath(__file__))
NR_WORKERS = 2


def script(name, *args):
    return [sys.executable, os.path.join(HERE, name), *args]


def start(folder, method):
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=work, args=(folder, "worker")) for _ in range(NR_WORKERS)]
    for worker in workers:
        worker.start()
    work(folder, "root")
    for worker in workers:
        worker.join()


def fork(folder):
    start(folder, "fork")


def spawn(folder):
    start(folder, "spawn")


def forkserver(folder):
    start(folder, "forkserver")


def pool(folder):
    with concurrent.futures.ProcessPoolExecutor(NR_WORKERS) as executor:
        for _ in range(NR_WORKERS):
            executor.submit(work, folder, "worker")
        work(folder, "root")


def shell(folder):
    """Python, sh, Python, Python."""
    command = " ".join("'%s'" % word for word in script("workers.py", "program", folder))
    child = subprocess.Popen(["sh", "-c", command + "; exit $?"])
    work(folder, "root", shell=child.pid)
    sys.exit(child.wait())


def program(folder):
    child = subprocess.Popen(script("working.py", folder, "worker"))
    work(folder, "program")
    sys.exit(child.wait())


def execs(folder):
    """Becomes another program when "first" is gone, and so does its child."""
    child = os.fork()
    work(folder, "root" if child else "worker", "first")
    command = script("working.py", folder, "root_after" if child else "worker_after")
    if child:
        os.execv(command[0], command)
    os.execv("/bin/sh", ["sh", "-c", 'exec "$@"', "sh", *command])


def daemon(folder):
    """It works on when "first" is gone, with which its parent's parent ends."""
    child = os.fork()
    if not child:
        parent = os.getpid()
        os.setsid()
        if os.fork() == 0:
            work(folder, "worker", parent=parent)
        os._exit(0)
    os.waitpid(child, 0)
    work(folder, "root", "first")


def exits(folder):
    """Many children end at once; the last one crashes."""
    children = []
    for number in range(200):
        child = os.fork()
        if not child:
            os._exit(0)
        children.append(child)
        os.waitpid(child, 0)
    child = os.fork()
    if not child:
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(3600)
    children.append(child)
    os.waitpid(child, 0)
    work(folder, "root", children=children)


def later(folder):
    """Starts a worker when "later" is gone, and a program without Python."""
    first = os.fork()
    if not first:
        work(folder, "worker")
        os._exit(0)
    work(folder, "root", "later")
    sleep = subprocess.Popen(["sleep", "3600"])
    second = os.fork()
    if not second:
        work(folder, "later")
        os._exit(0)
    work(folder, "root_later", sleep=sleep.pid)
    sleep.kill()
    for child in first, second:
        os.waitpid(child, 0)
    sleep.wait()


def wait_first(folder):
    with open(os.path.join(folder, "fifo_first")):
        pass


def wait_second(folder):
    with open(os.path.join(folder, "fifo_second")):
        pass


def waits(folder):
    """A worker waits until somebody opens a FIFO, then for another one."""
    worker = os.fork()
    if not worker:
        report(folder, "worker")
        wait_first(folder)
        wait_second(folder)
        os._exit(0)
    work(folder, "root")
    os.waitpid(worker, 0)


def alone(folder):
    """Children that are not Python, and as many that are as the folder has files called child…"""
    children = [subprocess.Popen(script("working.py", folder, "worker"))
                for name in os.listdir(folder) if name.startswith("child")]
    sleep = subprocess.Popen(["sleep", "3600"])
    work(folder, "root")
    sleep.kill()
    sleep.wait()
    for child in children:
        child.wait()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
