# SPDX-License-Identifier: MIT
"""An asyncio server and its clients in one process, on the loopback interface.

A client sends a line and reads the answer. The server runs three tasks of 10 to 100 µs for each
line: parse, look_up and render, each a coroutine of its own.
"""
import asyncio

import ready

NR_CLIENTS = 4
STEPS = 700


def spin(steps):
    n = 0
    while n < steps:
        n += 1


def split(line):
    spin(STEPS)
    return line.decode().split()


def find(key):
    spin(3 * STEPS)
    return len(key)


def to_text(key, value):
    spin(6 * STEPS)
    return "%s %d\n" % (key, value)


async def parse(line):
    return split(line)[1]


async def look_up(key):
    await asyncio.sleep(0)
    return find(key)


async def render(key, value):
    await asyncio.sleep(0)
    return to_text(key, value)


async def answer(line):
    loop = asyncio.get_event_loop()
    key = await loop.create_task(parse(line))
    value = await loop.create_task(look_up(key))
    return await loop.create_task(render(key, value))


async def serve(reader, writer):
    while True:
        line = await reader.readline()
        if not line:
            break
        writer.write((await answer(line)).encode())
        await writer.drain()
    writer.close()


async def ask(reader, writer, key):
    writer.write(b"get %s\n" % key)
    await writer.drain()
    return await reader.readline()


async def client(number, port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in ready.rounds():
        await ask(reader, writer, b"key" * number)
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    clients = [client(number + 1, port) for number in range(NR_CLIENTS)]
    ready.announce()
    await asyncio.gather(*clients)
    server.close()


loop = asyncio.new_event_loop()
loop.run_until_complete(main())
