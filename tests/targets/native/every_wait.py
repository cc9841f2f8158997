# SPDX-License-Identifier: MIT
"""Threads that wait in C, one in each way; what they wait for never comes."""
import os
import queue
import select
import socket
import threading
import time

import ready

LONG_S = 3600
kept = []


def lock():
    held = threading.Lock()
    held.acquire()
    held.acquire()


def timed_lock():
    held = threading.Lock()
    held.acquire()
    held.acquire(timeout=LONG_S)


def sleep():
    time.sleep(LONG_S)


def pipe():
    kept.append(os.pipe())
    return kept[-1][0]


def select_select():
    select.select([pipe()], [], [], LONG_S)


def epoll():
    waiter = select.epoll()
    waiter.register(pipe(), select.EPOLLIN)
    waiter.poll(LONG_S)


def poll():
    waiter = select.poll()
    waiter.register(pipe(), select.POLLIN)
    waiter.poll(LONG_S * 1000)


def read():
    os.read(pipe(), 1)


def receive():
    kept.append(socket.socketpair())
    kept[-1][0].recv(1)


def get():
    queue.Queue().get()


def get_simple():
    getattr(queue, "SimpleQueue", queue.Queue)().get()  # 3.7 and newer


def condition():
    held = threading.Condition()
    with held:
        held.wait()


def event():
    threading.Event().wait(LONG_S)


def key_of_sort():
    sorted([1], key=lambda _: time.sleep(LONG_S))


ways = [lock, timed_lock, sleep, select_select, epoll, poll, read, receive, get, get_simple,
        condition, event, key_of_sort]
for way in ways:
    threading.Thread(target=way, name=way.__name__, daemon=True).start()
ready.announce()
sleep()
