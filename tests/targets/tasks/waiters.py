# SPDX-License-Identifier: MIT
"""A tree of tasks that wait for good: in task groups, gathers, locks and queues, named and not.
Reports, of each task, what asyncio.capture_call_graph() says, or before 3.14 Task.get_stack(), which
has only the outermost frame. Runs on CPython 3.8 and newer.
"""
import asyncio
import os

import ready


async def leaf(future):
    await future


async def branch(future, depth):
    await leaf(future)
    return depth


async def together(coroutines):
    """In a group, or in a gather() before 3.11. Each has a name, or None."""
    if hasattr(asyncio, "TaskGroup"):
        async with asyncio.TaskGroup() as tasks:
            for coroutine, name in coroutines:
                tasks.create_task(coroutine, name=name)
    else:
        await asyncio.gather(*(asyncio.create_task(coroutine, name=name)
                               for coroutine, name in coroutines))


async def group(future, name):
    await together([(branch(future, number), "%s-%d" % (name, number)) for number in range(3)]
                   + [(gather(future), None)])


async def gather(future):
    await asyncio.gather(*(leaf(future) for _ in range(2)))


async def locked(lock):
    async with lock:
        pass


async def consumer(queue):
    await queue.get()


def graph_of(task):
    facts = {"id": hex(id(task)), "name": task.get_name()}
    if not hasattr(asyncio, "capture_call_graph"):
        return {**facts, "frames": [(frame.f_code.co_name, frame.f_lineno)
                                    for frame in task.get_stack()]}
    graph = asyncio.capture_call_graph(task)
    return {
        **facts,
        "frames": [(entry.frame.f_code.co_qualname, entry.frame.f_lineno)
                   for entry in reversed(graph.call_stack)],
        "awaited_by": sorted(tasks_above(graph)),
    }


def tasks_above(graph):
    for above in graph.awaited_by:
        if isinstance(above.future, asyncio.Task):
            yield hex(id(above.future))
        else:
            yield from tasks_above(above)


def report(nr_rounds):
    """Let all tasks go where they wait. No task runs in this."""
    loop = asyncio.get_running_loop()
    if nr_rounds:
        loop.call_soon(report, nr_rounds - 1)
    else:
        ready.announce(tasks=[graph_of(task) for task in asyncio.all_tasks()])


async def main():
    loop = asyncio.get_running_loop()
    future, lock, queue = loop.create_future(), asyncio.Lock(), asyncio.Queue()
    await lock.acquire()
    loop.set_exception_handler(lambda _, context: os.abort())
    loop.call_soon(report, 50)
    await together([(group(future, name), name) for name in ("a", "b")]
                   + [(locked(lock), None), (consumer(queue), "consumer")])


asyncio.run(main())
