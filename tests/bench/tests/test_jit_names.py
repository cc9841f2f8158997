# SPDX-License-Identifier: MIT
import struct
import tempfile
import unittest

from bench import jit_names


def load(name):
    body = struct.pack("<IIQQQQ", 1, 1, 0x1000, 0x1000, 1, 1) + name.encode() + b"\0\xc3"
    return jit_names.PREFIX.pack(jit_names.LOAD, jit_names.PREFIX.size + len(body), 7) + body


UNWINDING = jit_names.PREFIX.pack(4, 120, 7) + bytes(104)
CLOSE = jit_names.PREFIX.pack(3, 16, 7)


class InOrder(unittest.TestCase):
    def names(self, *records):
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(jit_names.HEADER_BYTES) + b"".join(records))
            file.flush()
            return jit_names.names_in_order(file.name)

    def test_whole(self):
        self.assertEqual(self.names(UNWINDING, load("f"), UNWINDING, load("g h"), CLOSE),
                         {"f", "g h"})

    def test_up_to_the_damage(self):
        for damage in (load("g")[10:], b"\xff" * 16, load("g")[:-1], UNWINDING[:8]):
            with self.subTest(damage):
                self.assertEqual(self.names(load("f"), damage), {"f"})
        self.assertEqual(self.names(load("f"), b"\xff" * 16, load("g")), {"f"})


class Unnamed(unittest.TestCase):
    def test_times(self):
        samples = [(0.0, ["py::f:/x", "[trampoline]"]), (0.5, ["py::f:/x"]),
                   (1.5, ["[trampoline]"])]
        self.assertEqual(jit_names.times_of_unnamed(samples), [0.0, 1.5])


if __name__ == "__main__":
    unittest.main()
