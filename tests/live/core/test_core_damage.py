# SPDX-License-Identifier: MIT
"""`pysample core` on damaged cores, and on files that are not cores.

Missing memory costs only what it held: a thread whose memory is there is complete, and the other
threads show nothing false.
"""
import json
import os
import struct
import unittest

import support
from support import core_files, per_layout, pysample
from support.core_files import core_json

FULL_FILTERS = (0x1, 0x3, 0x13, 0x23, 0x31, 0x33, 0x37, 0x7F)
EMPTY_FILTERS = (0x0, 0x10, 0x20)  # without private memory
KEPT_PERCENT = (99.99, 99, 90, 70, 50, 20, 5, 1, 0.01)


GAP = "not in the core"


def fits(frame, true, has_gaps):
    """Whether it is the true frame, except for what is reported as missing."""
    return all(value == true[key] or has_gaps and (not value or GAP in str(value))
               for key, value in frame.items())


def is_part(thread, truth):
    """Whether its frames are some of the true ones, in their order."""
    has_gaps = thread["error"] is not None
    rest = iter(core_files.expanded(truth))
    return all(any(fits(frame, true, has_gaps) for true in rest)
               for frame in support.dumped_frames(thread))


class DamageTestCase(unittest.TestCase):
    maxDiff = 4000

    def assert_partial(self, path, truths):
        """Check that what is reported is true. Return the number of complete threads."""
        result = pysample("core", "--json", path)
        self.assertIn(result.status, (0, 1, 3), result.stderr)
        if result.status:
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, r"\Apysample: [^\n]+\n\Z")
            return 0
        document = json.loads(result.stdout)
        # The damage may be in the ids of the threads.
        by_name = {truth["name"]: truth for truth in truths}
        by_tid = {truth["tid"]: truth for truth in truths}
        nr_whole = 0
        for thread in document["threads"]:
            truth = by_tid.get(thread["tid"]) or by_name[thread["name"]]
            fault = core_files.frames_fault(thread, truth)
            if thread["error"] is None and thread["frames"]:
                self.assertIsNone(fault, fault)
            self.assertTrue(fault is None or is_part(thread, truth), fault)
            nr_whole += fault is None
        return nr_whole


@per_layout
class Missing(DamageTestCase):
    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def test_filters_with_private_memory(self):
        for bits in FULL_FILTERS:
            with self.subTest(filter=hex(bits)), core_files.coredump_filter(bits), \
                    core_files.crashed(self.interpreter, "handled") as core:
                threads = core.report["threads"]
                self.assertEqual(self.assert_partial(core.path, threads), len(threads))
                self.assertEqual(core_json(core.path)["python"], core.report["python"])

    def test_filters_without_private_memory(self):
        for bits in EMPTY_FILTERS:
            with self.subTest(filter=hex(bits)), core_files.coredump_filter(bits), \
                    core_files.crashed(self.interpreter, "handled") as core:
                result = pysample("core", core.path)
                self.assertEqual(result.status, 3, result.stderr)
                self.assertRegex(result.stderr, "coredump_filter")

    def test_cut_off(self):
        with core_files.crashed(self.interpreter, "threads") as core:
            size = os.path.getsize(core.path)
            nr_whole = []
            for percent in KEPT_PERCENT:
                with self.subTest(kept="%s %%" % percent):
                    os.truncate(core.path, int(size * percent / 100))
                    nr_whole.append(self.assert_partial(core.path, core.report["threads"]))
            # The main thread's stack is last in the file.
            self.assertGreaterEqual(nr_whole[0], 50)
            self.assertEqual(nr_whole, sorted(nr_whole, reverse=True))

    def test_truncation_is_reported(self):
        with core_files.crashed(self.interpreter, "single") as core:
            size = os.path.getsize(core.path)
            os.truncate(core.path, size - 4096)
            document = core_json(core.path)
            self.assertEqual(document["truncated_bytes"], 4096)
            self.assertRegex(" ".join(document["problems"]), "truncated")

    def test_limits(self):
        for limit_kib in (100, 2000, 4000, 5000):
            with self.subTest(limit_kib=limit_kib), \
                    core_files.core_limit(limit_kib << 10), \
                    core_files.crashed(self.interpreter, "threads=20") as core:
                self.assert_partial(core.path, core.report["threads"])


class Overwritten:
    """A core with some bytes replaced while the block lasts."""

    def __init__(self, path, offset, data):
        self.path, self.offset, self.data = path, offset, data

    def exchange(self):
        with open(self.path, "r+b") as file:
            file.seek(self.offset)
            before = file.read(len(self.data))
            file.seek(self.offset)
            file.write(self.data)
        self.data = before

    def __enter__(self):
        self.exchange()

    def __exit__(self, *_):
        self.exchange()


# Offsets in an ELF64 header (elf(5)).
E_PHOFF, E_PHENTSIZE, E_PHNUM, E_SHOFF = 0x20, 0x36, 0x38, 0x28


class Headers(DamageTestCase):
    """Impossible numbers in the core's headers and notes."""

    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(core_files.kernel_cores())
        cls.core = cls.enterClassContext(
            core_files.crashed(support.newest_interpreter(), "handled"))
        with open(cls.core.path, "rb") as file:
            cls.head = file.read(1 << 20)
        cls.notes = list(core_files.notes_of(cls.head))

    def check(self, offset, layout, *numbers):
        with Overwritten(self.core.path, offset, struct.pack("<" + layout, *numbers)):
            return self.assert_partial(self.core.path, self.core.report["threads"])

    def test_program_headers(self):
        (nr,) = struct.unpack_from("<H", self.head, E_PHNUM)
        for name, offset, layout, number in (
                ("no headers", E_PHNUM, "H", 0), ("one", E_PHNUM, "H", 1),
                ("half of them", E_PHNUM, "H", nr // 2), ("too many", E_PHNUM, "H", 0xFFFE),
                ("as many as section 0 says, and there is none", E_PHNUM, "H", 0xFFFF),
                ("they begin behind the end", E_PHOFF, "Q", 1 << 62),
                ("they begin at the end of numbers", E_PHOFF, "Q", (1 << 64) - 8),
                ("a size of their own", E_PHENTSIZE, "H", 1)):
            with self.subTest(name):
                self.check(offset, layout, number)

    def test_number_of_program_headers_in_section_0(self):
        """The form of a core with more than 65534 mappings."""
        (nr,) = struct.unpack_from("<H", self.head, E_PHNUM)
        size = os.path.getsize(self.core.path)
        section = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 1, 0, nr, 0, 0)
        with open(self.core.path, "ab") as file:
            file.write(section)
        try:
            with Overwritten(self.core.path, E_SHOFF, struct.pack("<Q", size)), \
                    Overwritten(self.core.path, E_SHOFF + 20, struct.pack("<HH", 1, 0)):
                self.assertEqual(self.check(E_PHNUM, "H", 0xFFFF),
                                 len(self.core.report["threads"]))
                with Overwritten(self.core.path, size + 44, struct.pack("<I", 0xFFFFFFFF)):
                    self.check(E_PHNUM, "H", 0xFFFF)
        finally:
            os.truncate(self.core.path, size)

    def test_notes(self):
        # The first note of each type: some types have one for each thread.
        notes = {kind: (note, content) for kind, note, content, _ in reversed(self.notes)}
        for kind, (note, content) in sorted(notes.items()):
            for number in (0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF):
                with self.subTest(note=hex(kind), number=hex(number)):
                    self.check(note, "I", number)
                    self.check(note + 4, "I", number)
                    self.check(note + 8, "I", number)
            with self.subTest(note=hex(kind), content="ones"):
                self.check(content, "QQQQQ", *[(1 << 64) - 1] * 5)

    def test_mapped_files(self):
        """The fields of NT_FILE: count, page size, then start, end and offset of each mapping."""
        (content,) = [content for kind, _, content, _ in self.notes
                      if kind == core_files.NT_FILE]
        for count in (0, 1, 1 << 32, (1 << 64) // 24, (1 << 64) - 1):
            with self.subTest(count=hex(count)):
                self.check(content, "Q", count)
        for size in (0, 1, 1 << 63, (1 << 64) - 1):
            with self.subTest(page_size=hex(size)):
                self.check(content + 8, "Q", size)
        for numbers in ((0, (1 << 64) - 1, 0), (1 << 63, 1 << 62, 5), (0, 0, 1 << 63)):
            with self.subTest(mapping=numbers):
                self.check(content + 16, "QQQ", *numbers)


class NoCore(unittest.TestCase):
    """Other files are refused with one sentence, and nothing else is printed."""

    def assert_refused(self, path, pattern):
        for options in ((), ("--json",)):
            result = pysample("core", *options, path)
            self.assertIn(result.status, (1, 3), result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, r"\Apysample: [^\n]*(%s)[^\n]*\n\Z" % pattern)

    def test_other_files(self):
        with support.fresh_folder() as (folder, _):
            empty = os.path.join(folder, "empty")
            open(empty, "wb").close()
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            for path, pattern in (("/etc/passwd", "no core|not a core"), (empty, "empty|no core"),
                                  (folder, "folder|regular"),
                                  (os.path.realpath("/usr/bin/python3"), "no core|not a core"),
                                  (support.PYSAMPLE, "no core|not a core"),
                                  ("/dev/null", "no core|empty|not a core"),
                                  (os.path.join(folder, "absent"), "No such file")):
                with self.subTest(path):
                    self.assert_refused(path, pattern)

    def test_other_machines(self):
        header = bytearray(64)
        header[:7] = b"\x7fELF\x02\x01\x01"
        with support.fresh_folder() as (folder, _):
            path = os.path.join(folder, "core")
            for name, place, value, pattern in (
                    ("aarch64 or x86-64", 18, 183 if os.uname().machine == "x86_64" else 62, ""),
                    ("mips", 18, 8, ""), ("big endian", 5, 2, ""), ("32 bits", 4, 1, "")):
                with self.subTest(name):
                    struct.pack_into("<HHI", header, 16, core_files.ET_CORE, 62, 1)
                    header[4:6] = b"\x02\x01"
                    if place == 18:
                        struct.pack_into("<H", header, place, value)
                    else:
                        header[place] = value
                    with open(path, "wb") as file:
                        file.write(header)
                    self.assert_refused(path, pattern)

    def test_a_process_without_python(self):
        with support.fresh_folder() as (folder, _), \
                support.plain_target("sleep", "60") as process:
            path = os.path.join(folder, "core")
            core_files.gdb_writes_core(process.pid, path)
            result = pysample("core", path)
            self.assertEqual(result.status, 3, result.stderr)
            self.assertRegex(result.stderr, r"\Apysample: [^\n]*[Pp]ython[^\n]*\n\Z")
