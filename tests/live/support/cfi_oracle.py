#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the compiled call frame information of real files with readelf's, row by row.

    cfi_oracle.py CLI [FILE...]

CLI is built from tests/tools/cfi_cli.c. Without files: the C library, the loader, libstdc++, the
interpreters of pyenv and the testbed, and a .debug_frame compiled for this test. In a build for
another machine (see tests/meson.build) CLI runs in $MESON_EXE_WRAPPER, and the files are those of
$SYSROOT.
"""
import glob
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

FUNCTION = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) "
                      r"pc=([0-9a-f]+)\.\.([0-9a-f]+)")
COMMON = re.compile(r"^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE ")
SYSROOT = os.environ.get("SYSROOT")
WRAPPER = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
COMPILER = shlex.split(os.environ.get("CC", "cc"))
ROW = re.compile(r"^([0-9a-f]{16}) (\S+) +(.*\S)")
REGISTER = re.compile(r"r\d+ \((\w+)\)")  # readelf's name of a register that holds another one


def canonical(cfa, rules):
    """A row as text, without registers that are unchanged, undefined (but for the return address)
    or vectors. On aarch64, where the return address is in a register at first, readelf says that
    of what is unchanged, too."""
    has_return = "ra=u" if SYSROOT is None else ""
    said = sorted(f"{name}={rule}" for name, rule in rules
                  if rule != "s" and (rule != "u" or f"{name}={rule}" == has_return)
                  and not name.startswith(("xmm", "v")))
    return " ".join([cfa] + said)


class Table:
    """readelf's decoding of a section: the rows of its functions, each (start, end, text)."""

    def __init__(self):
        self.rows = []
        self.commons = {}
        self.common = self.function = None
        self.columns = []

    def finish(self):
        if self.function is None:
            return
        cie, start, end, rows = self.function
        rows = rows or [(start, self.commons.get(cie))]
        starts = [row[0] for row in rows] + [end]
        for (begin, text), after in zip(rows, starts[1:]):
            if start <= begin < after <= end and text:
                self.rows.append((begin, after, text))
        self.function = None

    def take(self, line):
        function = FUNCTION.match(line)
        common = COMMON.match(line)
        row = ROW.match(line)
        if function or common:
            self.finish()
        if function:
            cie, *pcs = (int(number, 16) for number in function.groups())
            self.function = (cie, *pcs, [])
            self.common = None
        elif common:
            self.common = int(common.group(1), 16)
        elif line.lstrip().startswith("LOC "):
            self.columns = line.split()[2:]
        elif row:
            rules = REGISTER.sub(r"\1", row.group(3)).split()
            text = canonical(row.group(2), zip(self.columns, rules))
            if self.common is not None:
                self.commons[self.common] = text
            else:
                self.function[3].append((int(row.group(1), 16), text))


def readelf_rows(path, section):
    """The rows of one section of a file, decoded by readelf."""
    table = Table()
    wanted = False
    run = subprocess.run(["readelf", "--wide", "--debug-dump=frames-interp", path],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    for line in run.stdout.splitlines():
        if line.startswith("Contents of the "):
            wanted = f" {section} " in line
        elif wanted:
            table.take(line)
    table.finish()
    return table.rows


def our_rules(cli, path, section, vaddrs):
    run = subprocess.run([*WRAPPER, cli, path, section],
                         input="".join(f"{vaddr:x}\n" for vaddr in vaddrs),
                         stdout=subprocess.PIPE, text=True, check=True)
    for line in run.stdout.splitlines():
        cfa, *rules = line.split()
        yield canonical(cfa, (rule.split("=") for rule in rules))


def differences(cli, path, section):
    """Compare the rules at the first and last byte of each row. Return the number of rows, and a
    line for each difference."""
    rows = readelf_rows(path, section)
    vaddrs = [vaddr for begin, end, _ in rows for vaddr in (begin, end - 1)]
    expected = [text for _, _, text in rows for _ in range(2)]
    rules = list(our_rules(cli, path, section, vaddrs))
    if len(rules) != len(vaddrs):
        raise AssertionError(f"{len(rules)} answers to {len(vaddrs)} questions")
    return len(rows), [f"{path} {vaddr:x}: expected {theirs}, not {ours}"
                       for vaddr, theirs, ours in zip(vaddrs, expected, rules) if theirs != ours]


def mapped_library(name):
    if SYSROOT:
        return glob.glob(f"{SYSROOT}/lib/*/{name}*")[0]
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return next(line.split()[-1] for line in maps.splitlines() if name in line)


def interpreters():
    """The interpreters' files: pyenv's, the testbed's and the distribution's. In a sysroot some
    other large programs."""
    if SYSROOT:
        return [f"{folder}/{name}" for folder in glob.glob(f"{SYSROOT}/usr/lib/*-linux-gnu")
                for name in ("libcrypto.so.3", "libgit2.so.1.5")]
    home = os.path.expanduser("~")
    found = glob.glob(f"{home}/.pyenv/versions/*/lib/libpython?.*.so.1.0")
    testbed = subprocess.run([pathlib.Path(__file__).parents[3] / "scripts/testbed", "--path"],
                             stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    found += glob.glob(f"{testbed}/usr/bin/python3.1[0-9]") if testbed else []
    return sorted(found) + [os.path.realpath("/usr/bin/python3")]


# Aligned stacks, alloca, noreturn calls, a jump table, epilogues in mid-function.
DEBUG_FRAME_SOURCE = """
#include <stdlib.h>
int g(void *); int many(int, int, int, int, int, int, int, int);
int f(int n) { char *p = __builtin_alloca(n); return g(p) + g(p + 1); }
int aligned(int n) { __attribute__((aligned(64))) char b[256]; return g(b) + n; }
int deep(int a, int b, int c, int d) { if (!a) abort(); if (!b) return g(&a);
    return many(a, b, c, d, g(&a), g(&b), g(&c), g(&d)) * a + b * c + d; }
"""


class CfiOracle(unittest.TestCase):
    cli = None

    def expect_same(self, path, section=".eh_frame", least=1):
        nr_rows, wrong = differences(self.cli, path, section)
        self.assertGreaterEqual(nr_rows, least, path)
        self.assertEqual(wrong[:10], [], f"{len(wrong)} of {2 * nr_rows} are wrong")

    def test_c_library(self):
        self.expect_same(mapped_library("libc.so.6"), least=10000)

    def test_loader(self):
        self.expect_same(mapped_library("ld-linux"), least=500)

    def test_interpreters(self):
        for path in interpreters():
            with self.subTest(path=path):
                self.expect_same(path, least=10000)

    def test_cplusplus(self):
        for path in glob.glob(f"{SYSROOT or ''}/usr/lib/*/libstdc++.so.6"):
            self.expect_same(path, least=10000)

    def test_debug_frame(self):
        for options in (["-O2"], ["-O0"], ["-O2", "-gdwarf-5"], ["-Os", "-gdwarf-2"]):
            with self.subTest(options=options), tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/made.so"
                subprocess.run([*COMPILER, "-g", "-gz=none", "-shared", "-fPIC", "-x", "c", "-",
                                "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
                                *options, "-o", path], input=DEBUG_FRAME_SOURCE, text=True,
                               check=True)
                self.expect_same(path, ".debug_frame", least=10)


def main(cli, *paths):
    if not paths:
        CfiOracle.cli = cli
        unittest.main(argv=sys.argv[:1])
    for path in paths:
        for section in (".eh_frame", ".debug_frame"):
            nr_rows, wrong = differences(cli, path, section) if \
                readelf_rows(path, section) else (0, [])
            print(*wrong[:20], f"{path} {section}: {nr_rows} rows, {len(wrong)} wrong", sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
