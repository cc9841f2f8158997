# SPDX-License-Identifier: MIT
"""Writes a .pysample file of made-up samples. Follows docs/formats.md and nothing else.

Where the document leaves a choice it is made at random, so that readers meet every form.
"""
import struct

import oracle
from recording_reader import compress

SEEK_TABLE = struct.Struct("<II")
HAS_WEIGHT = 1 << 7
UNKNOWN_TAG = 99


def uint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(data) + bytes([value])


def sint(value):
    return uint(value << 1 ^ value >> 63)


def string(text):
    data = text.encode("utf-8", "surrogateescape")
    return uint(len(data)) + data


def columns(*parts):
    return b"".join(uint(len(part)) for part in parts) + b"".join(parts)


class Sparse:
    """A column of values, each with the number of defaults before it."""

    def __init__(self):
        self.data, self.gap = b"", 0

    def add(self, value):
        """A value of None is the default."""
        if value is None:
            self.gap += 1
        else:
            self.data += uint(self.gap) + value
            self.gap = 0


class Writer:
    def __init__(self, chance, epoch_us):
        self.chance, self.epoch_us = chance, epoch_us
        self.content = b"pysample" + struct.pack("<BBQ", 1, 0, epoch_us)
        self.file, self.table = b"", []
        self.names, self.values = [], {}
        self.nr_samples, self.ticking, self.slots = 0, None, {}
        self.forget()

    def forget(self):
        self.functions, self.paths, self.nodes = {}, {}, {}
        self.times_of = {}
        for slot in self.slots.values():
            slot["node"] = 0

    def record(self, tag, payload):
        if self.chance.random() < 0.1:
            self.content += uint(UNKNOWN_TAG) + uint(3) + b"abc"
        if tag in (5, 10):
            payload += self.more()
        self.content += bytes([tag]) + uint(len(payload)) + payload

    def flush(self):
        packed = compress(self.content)
        self.table.append((len(packed), len(self.content)))
        self.file, self.content = self.file + packed, b""

    def info(self, **pairs):
        self.names += [name for name in pairs if name not in self.values]
        self.values.update(pairs)
        self.record(1, b"".join(string(name) + string(str(pairs[name])) for name in pairs))

    def count(self, **changes):
        self.record(2, b"".join(uint(self.names.index(name)) + sint(changes[name])
                                for name in changes))

    def process(self, process):
        payload = sint(process.pid) + string(process.command_line)
        if not process.name:  # as of an earlier version
            self.record(3, payload)
        else:
            self.record(3, payload + sint(process.parent) + string(process.name)
                        + uint(process.start) + self.more())

    def process_end(self, process, time):
        self.record(11, uint(process) + uint(time) + self.more())

    def more(self):
        """What a later version may append to a record."""
        return b"later" if self.chance.random() < 0.3 else b""

    def thread(self, slot, thread):
        self.slots[slot] = {"node": 0, "flags": 0, "time": None}
        self.record(4, uint(slot) + uint(thread.process + 1) + sint(thread.tid)
                    + sint(thread.interpreter) + uint(thread.is_main) + string(thread.name))

    def rename(self, slot, name):
        self.record(5, uint(slot) + string(name))

    def reset(self):
        self.record(8, b"")
        self.forget()

    def function(self, function):
        if function not in self.functions:
            self.functions[function] = len(self.functions)
            number = self.paths.get(function.path, 0)
            self.paths.setdefault(function.path, len(self.paths) + 1)
            kind = function.kind or self.chance.choice((0, 0, 0, 99))  # a later version's
            self.record(6, uint(kind) + string(function.qualname) + uint(number)
                        + (b"" if number else string(function.path)) + sint(function.first_line))
        return self.functions[function]

    def stack(self, frames):
        """The node of a stack, as samples have it. Writes what is new of the stack."""
        node, new = 0, []
        for frame in frames:
            function = self.function(frame.function)
            if (node, frame) not in self.nodes:
                number = len(self.nodes) + 1
                self.nodes[node, frame] = number
                new.append((number - node if node else 0, function,
                            frame.line - frame.function.first_line))
            node = self.nodes[node, frame]
        for batch in (new[:len(new) // 2], new[len(new) // 2:]):
            if batch:
                self.record(7, uint(len(batch)) + columns(
                    b"".join(uint(one[0]) for one in batch),
                    b"".join(uint(one[1]) for one in batch),
                    b"".join(sint(one[2]) for one in batch)))
        return node

    def samples(self, ticks, interval):
        """ticks: [(time in ns, [(slot, frames, wall in us, cpu in us, flags)])]."""
        ticks = [(time, [(slot, self.stack(frames), wall, cpu, flags)
                         for slot, frames, wall, cpu, flags in row]) for time, row in ticks]
        shift = next((n for n in (3, 2, 1) if all(time % (1000 << n) == 0 for time, _ in ticks)), 0)
        width = self.chance.randrange(17)
        start = ticks[0][0] - interval - self.chance.randrange(3) * interval
        rows = [row for _, row in ticks]
        self.record(9, uint(len(ticks)) + uint(sum(map(len, rows))) + uint(start) + uint(interval)
                    + bytes([shift, width]) + columns(
                        *self.times([time for time, _ in ticks], start, interval, shift, width),
                        self.lists(rows), *self.values_of(ticks)))
        self.nr_samples += sum(map(len, rows))

    def times(self, times, start, interval, shift, width):
        unit, packed, high, skips = 1000 << shift, 0, Sparse(), Sparse()
        grid = before = start
        for number, time in enumerate(times):
            skip = (time - grid) // interval - 1 if interval else 0
            grid = grid + interval * (1 + skip) if interval else before
            offset, before = time // unit - grid // unit, time
            packed |= (offset & (1 << width) - 1) << number * width
            high.add(uint(offset >> width) if offset >> width else None)
            skips.add(sint(skip) if skip else None)
        return packed.to_bytes((len(times) * width + 7) // 8, "little"), high.data, skips.data

    def lists(self, rows):
        column = Sparse()
        for row in rows:
            slots = [sample[0] for sample in row]
            column.add(None if slots == self.ticking else uint(len(slots)) + b"".join(
                map(uint, slots)))
            self.ticking = slots
        return column.data

    def values_of(self, ticks):
        node_gaps, flag_gaps, cpu_gaps = Sparse(), Sparse(), Sparse()
        nodes, flags_of, walls, cpus = b"", b"", b"", b""
        for time, row in ticks:
            for number, node, wall, cpu, flags in row:
                slot = self.slots[number]
                since = (time - (time if slot["time"] is None else slot["time"])) // 1000
                measured = flags & (oracle.CPU_MEASURED | oracle.ON_CPU) == (
                    oracle.CPU_MEASURED | oracle.ON_CPU)
                if wall != since or (cpu and not measured) or self.chance.random() < 0.05:
                    flags |= HAS_WEIGHT
                    walls += uint(wall)
                if flags & HAS_WEIGHT or measured:
                    cpu_gaps.add(b"" if wall != cpu else None)
                    cpus += sint(wall - cpu) if wall != cpu else b""
                node_gaps.add(b"" if node != slot["node"] else None)
                nodes += uint(node) if node != slot["node"] else b""
                flag_gaps.add(b"" if flags != slot["flags"] else None)
                flags_of += uint(flags) if flags != slot["flags"] else b""
                slot.update(node=node, flags=flags, time=time)
        return (node_gaps.data, nodes, flag_gaps.data, flags_of, walls, cpu_gaps.data, cpus)

    def finish(self):
        """Return the bytes of the file."""
        self.record(10, uint(self.nr_samples))
        self.flush()
        table = b"".join(SEEK_TABLE.pack(*sizes) for sizes in self.table)
        table += struct.pack("<IBI", len(self.table), 0, 0x8F92EAB1)
        return self.file + SEEK_TABLE.pack(0x184D2A5E, len(table)) + table
