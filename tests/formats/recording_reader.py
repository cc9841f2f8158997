# SPDX-License-Identifier: MIT
"""Reads a .pysample file. Follows docs/formats.md and nothing else."""
import dataclasses
import struct
import subprocess

import oracle

FRAME_MAGIC, SKIPPABLE_MAGIC, SEEK_MAGIC = 0xFD2FB528, 0x184D2A5E, 0x8F92EAB1
INFO, COUNTERS, PROCESS, THREAD, RENAME, FUNCTION, NODES, RESET, SAMPLES, END = range(1, 11)
HAS_WEIGHT = 1 << 7


class Broken(Exception):
    """The file breaks a rule of the document."""


def rule(holds, text):
    if not holds:
        raise Broken(text)


# ---- the outer form -------------------------------------------------------------


@dataclasses.dataclass
class Outer:
    frames: list  # their bytes
    seek_table: list  # [(size in the file, size of the content)]; None if there is none
    nr_left: int  # bytes after the last whole frame


def frame_length(data, start):
    """The length of a zstd frame, by RFC 8878; None if it is cut off."""
    try:
        descriptor = data[start + 4]
        single, has_checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        place = start + 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
        place += (single, 2, 4, 8)[descriptor >> 6]
        rule(has_checksum, "frame without a checksum")
        last = 0
        while not last:
            word = int.from_bytes(data[place:place + 3], "little")
            rule(len(data) >= place + 3, "cut off")
            last, kind, size = word & 1, word >> 1 & 3, word >> 3
            place += 3 + (1 if kind == 1 else size)
        rule(len(data) >= place + 4, "cut off")
        return place + 4 - start
    except (IndexError, Broken):
        return None


def seek_table(payload):
    rule(len(payload) >= 9, "seek table without a footer")
    nr, descriptor, magic = struct.unpack("<IBI", payload[-9:])
    rule((descriptor, magic) == (0, SEEK_MAGIC), "footer of the seek table")
    rule(len(payload) == 9 + 8 * nr, "length of the seek table")
    return [struct.unpack_from("<II", payload, 8 * n) for n in range(nr)]


def outer(data):
    found, place = Outer([], None, 0), 0
    while place + 8 <= len(data):
        magic, size = struct.unpack_from("<II", data, place)
        if magic == SKIPPABLE_MAGIC and place + 8 + size > len(data):
            break
        if magic == SKIPPABLE_MAGIC:
            rule(place + 8 + size == len(data), "something follows the seek table")
            found.seek_table = seek_table(data[place + 8:])
            return found
        rule(magic == FRAME_MAGIC, "neither a zstd frame nor a seek table")
        length = frame_length(data, place)
        if length is None:
            break
        found.frames.append(data[place:place + length])
        place += length
    found.nr_left = len(data) - place
    return found


def decompress(data):
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout


def compress(data):
    return subprocess.run(["zstd", "-qc", "--check"], input=data, stdout=subprocess.PIPE,
                          check=True).stdout


# ---- numbers -------------------------------------------------------------------


class Bytes:
    """Bytes that are read from front to back."""

    def __init__(self, data):
        self.data, self.place = data, 0

    def __bool__(self):
        return self.place < len(self.data)

    def take(self, size):
        rule(self.place + size <= len(self.data), "behind the end")
        self.place += size
        return self.data[self.place - size:self.place]

    def u8(self):
        return self.take(1)[0]

    def uint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                rule(value < 1 << 64, "number of more than 64 bits")
                return value
        raise Broken("number of more than 10 bytes")

    def int(self):
        value = self.uint()
        return value >> 1 ^ -(value & 1)

    def string(self):
        data = self.take(self.uint())
        rule(0 not in data, "NUL in a string")
        return data.decode("utf-8", "surrogateescape")

    def columns(self, nr):
        return [Bytes(self.take(size)) for size in [self.uint() for _ in range(nr)]]


def sparse(column, *values):
    """{index: values} of a column in which each entry begins with a gap."""
    found, index = {}, -1
    while column:
        index += 1 + column.uint()
        found[index] = [value(column) for value in values]
    return found


# ---- records -------------------------------------------------------------------


@dataclasses.dataclass
class Slot:
    thread: int
    node: int = 0  # as stored
    flags: int = 0
    time: int = None  # of its previous sample


class Weights:
    """The columns of weights. CPU weights are stored for only some of the samples that have one."""

    def __init__(self, walls, cpus):
        self.walls, self.cpus, self.nr_cpus = walls, cpus, 0

    def cpu_less(self):
        self.nr_cpus += 1
        return self.cpus.pop(self.nr_cpus - 1, [0])[0]


class Reader:
    def __init__(self):
        self.recording = oracle.Recording()
        self.names, self.slots, self.ticking = [], {}, []
        self.epoch_us = self.nr_said = None
        self.last_time = self.nr_in_frame = self.command_bytes = 0
        self.reset()

    def reset(self):
        self.paths, self.functions, self.nodes = [], [], []
        for slot in self.slots.values():
            slot.node = 0

    def header(self, stream):
        rule(stream.take(8) == b"pysample", "magic")
        rule(stream.u8() == 1, "version")
        stream.u8()
        (self.epoch_us,) = struct.unpack("<Q", stream.take(8))

    def frame(self, stream):
        """The records of one frame. The first frame begins with the header."""
        if self.epoch_us is None:
            self.header(stream)
        self.nr_in_frame = 0
        while stream:
            rule(self.nr_said is None, "something follows END")
            tag = stream.u8()
            payload = Bytes(stream.take(stream.uint()))
            if tag in RECORDS:
                RECORDS[tag](self, payload)

    def info(self, payload):
        while payload:
            name = payload.string()
            if name not in self.recording.info:
                self.names.append(name)
            self.recording.info[name] = payload.string()

    def counters(self, payload):
        while payload:
            name = self.names[payload.uint()]
            self.recording.info[name] = str(int(self.recording.info[name]) + payload.int())

    def process(self, payload):
        known = [payload.int(), payload.string()]
        if payload:
            known += [payload.int(), payload.string(), payload.uint()]
        process = oracle.Process(*known)
        for text in process.command_line, process.name:
            self.command_bytes += len(text.encode("utf-8", "surrogateescape"))
        rule(self.command_bytes <= 64 << 20, "length of names and command lines")
        rule(len(self.recording.processes) < 1 << 16, "number of processes")
        self.recording.processes.append(process)

    def thread(self, payload):
        slot, process = payload.uint(), payload.uint()
        rule(slot < 1 << 17, "slot")
        rule(len(self.recording.threads) < 1 << 22, "number of threads")
        rule(process <= len(self.recording.processes), "process of a thread")
        tid, interpreter, flags, name = (payload.int(), payload.int(), payload.uint(),
                                         payload.string())
        self.slots[slot] = Slot(len(self.recording.threads))
        self.recording.threads.append(
            oracle.Thread(process - 1, tid, interpreter, bool(flags & 1), name))

    def rename(self, payload):
        slot = self.slots[payload.uint()]
        self.recording.threads[slot.thread].name = payload.string()

    def function(self, payload):
        kind, qualname, path = payload.uint(), payload.string(), payload.uint()
        kind = kind if kind <= oracle.TASK else oracle.PYTHON
        if path == 0:
            self.paths.append(payload.string())
        rule(path <= len(self.paths), "path of a function")
        self.functions.append(
            oracle.Function(kind, qualname, self.paths[path - 1], payload.int()))

    def add_nodes(self, payload):
        nr = payload.uint()
        parents, functions, lines = payload.columns(3)
        for _ in range(nr):
            back, function = parents.uint(), self.functions[functions.uint()]
            rule(back <= len(self.nodes), "parent of a node")
            outside = self.nodes[-back] if back else ()
            frame = oracle.Frame(function, function.first_line + lines.int())
            self.nodes.append(outside + (frame,))
        rule(not (parents or functions or lines), "columns of nodes that are too long")

    def samples(self, payload):
        nr_ticks, nr_samples = payload.uint(), payload.uint()
        self.nr_in_frame += nr_samples
        rule(self.nr_in_frame <= 1 << 22, "samples of a frame")
        start, interval, unit = payload.uint(), payload.uint(), 1000 << payload.u8()
        width = payload.u8()
        columns = payload.columns(11)
        times = self.times(nr_ticks, start, interval, unit, width, columns[:3])
        lists = sparse(columns[3], lambda data: [data.uint() for _ in range(data.uint())])
        nodes = sparse(columns[4], lambda gap: columns[5].uint())
        flags = sparse(columns[6], lambda gap: columns[7].uint())
        weights = Weights(columns[8], sparse(columns[9], lambda gap: columns[10].int()))
        index = 0
        for tick, time in enumerate(times):
            if tick in lists:
                (self.ticking,) = lists.pop(tick)
            for slot in self.ticking:
                self.sample(self.slots[slot], time, nodes.pop(index, None), flags.pop(index, None),
                            weights)
                index += 1
        rule(index == nr_samples, "number of samples")
        rule(not (lists or nodes or flags or weights.cpus or any(columns)), "columns that are too long")

    def times(self, nr_ticks, start, interval, unit, width, columns):
        packed = int.from_bytes(columns[0].take((nr_ticks * width + 7) // 8), "little")
        high = sparse(columns[1], Bytes.uint)
        skips = sparse(columns[2], Bytes.int)
        grid = time = start
        for tick in range(nr_ticks):
            offset = packed >> tick * width & (1 << width) - 1
            offset |= high.pop(tick, [0])[0] << width
            skip = skips.pop(tick, [0])[0]
            grid = grid + interval * (1 + skip) if interval else time
            time = (grid // unit + offset) * unit
            rule(time >= self.last_time, "time that goes back")
            self.last_time = time
            yield time
        rule(not (high or skips), "columns of times that are too long")

    def sample(self, slot, time, node, flags, weights):
        if node is not None:
            (slot.node,) = node
        if flags is not None:
            (slot.flags,) = flags
        has_weight = slot.flags & HAS_WEIGHT
        wall = (time - (time if slot.time is None else slot.time)) // 1000
        if has_weight:
            wall = weights.walls.uint()
        cpu = 0
        if has_weight or slot.flags & (oracle.CPU_MEASURED | oracle.ON_CPU) == (
                oracle.CPU_MEASURED | oracle.ON_CPU):
            cpu = wall - weights.cpu_less()
        slot.time = time
        rule(slot.node <= len(self.nodes), "node of a sample")
        frames = self.nodes[slot.node - 1] if slot.node else ()
        self.recording.samples.append(oracle.Sample(
            (self.epoch_us + time // 1000) * 1000, wall * 1000, cpu * 1000, slot.thread,
            self.recording.stack(frames), slot.flags & ~HAS_WEIGHT))

    def end(self, payload):
        self.nr_said = payload.uint()
        rule(self.nr_said == len(self.recording.samples), "number of samples at the end")


RECORDS = {INFO: Reader.info, COUNTERS: Reader.counters, PROCESS: Reader.process,
           THREAD: Reader.thread, RENAME: Reader.rename, FUNCTION: Reader.function,
           NODES: Reader.add_nodes, RESET: lambda reader, payload: reader.reset(),
           SAMPLES: Reader.samples, END: Reader.end}


def read(path, torn=False):
    """Read a file, whole or torn, into an oracle.Recording."""
    with open(path, "rb") as file:
        found = outer(file.read())
    reader = Reader()
    contents = [decompress(data) for data in found.frames]
    for content in contents:
        reader.frame(Bytes(content))
        reader.recording.flushes.append(len(reader.recording.samples))
    if not torn:
        rule(not found.nr_left and reader.nr_said is not None, "torn")
        rule(found.seek_table == [(len(frame), len(content)) for frame, content
                                  in zip(found.frames, contents)], "sizes in the seek table")
    return reader.recording
