#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make_wheel.py VERSION TREE FOLDER: make a wheel of the static program in the installed TREE.

Format: the packaging user guide, "Binary distribution format"; tags: PEP 600 and PEP 656.
"""

import base64
import datetime
import hashlib
import os
import struct
import sys
import zipfile

PT_INTERP, PT_DYNAMIC, PT_NOTE = 3, 2, 4
DT_NEEDED = 1
NT_GNU_ABI_TAG = 1
MACHINES = {62: "x86_64", 183: "aarch64"}

# manylinux_2_17 is CentOS 7, with this kernel; musllinux_1_1 is newer.
KERNEL_OF_TAGS = (3, 10, 0)
PLATFORMS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"

# pysample, glibc and libiberty, libelf, …: the file copyright says which is of which.
LICENCES = ("MIT AND LGPL-2.1-or-later AND (LGPL-3.0-or-later OR GPL-2.0-or-later) AND Apache-2.0 "
            "AND BSD-2-Clause AND BSD-3-Clause AND Zlib AND X11")

METADATA = """\
Metadata-Version: 2.4
Name: pysample
Version: {}
Summary: Sampling profiler for CPython: reads the stacks of a running process, and never stops it
License-Expression: {}
Keywords: profiler,profiling,performance,flame graph,debugging
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: Implementation :: CPython
Classifier: Topic :: Software Development :: Debuggers
Classifier: Topic :: System :: Monitoring
Requires-Python: >=3.6
Description-Content-Type: text/markdown
{}
{}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: pysample
Root-Is-Purelib: false
{}"""


def program_headers(elf):
    """(type, offset, size) of each."""
    table, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for start in range(table, table + size * count, size):
        kind, _, offset, _, _, nr_bytes = struct.unpack_from("<IIQQQQ", elf, start)
        yield kind, offset, nr_bytes


def required_kernel(notes):
    """The oldest Linux that the C library in the program runs on; None if no note says."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12:at + 12 + name_size]
        at += 12 + (name_size + 3 & ~3)
        if name == b"GNU\0" and kind == NT_GNU_ABI_TAG:
            return struct.unpack_from("<III", notes, at + 4)
        at += size + 3 & ~3
    return None


def platform_tags(elf):
    """The platforms that the program runs on. Exits if it needs more than these have."""
    if elf[:6] != b"\x7fELF\x02\x01":
        sys.exit("make_wheel: the program is no 64-bit ELF file")
    machine = MACHINES[struct.unpack_from("<H", elf, 18)[0]]
    kernel = None
    for kind, offset, size in program_headers(elf):
        part = elf[offset:offset + size]
        if kind == PT_INTERP:
            sys.exit("make_wheel: the program is not static: it has an interpreter")
        if kind == PT_DYNAMIC and any(tag == DT_NEEDED for tag, _ in struct.iter_unpack("<QQ", part)):
            sys.exit("make_wheel: the program is not static: it needs libraries")
        if kind == PT_NOTE:
            kernel = kernel or required_kernel(part)
    if not kernel or kernel > KERNEL_OF_TAGS:
        sys.exit("make_wheel: the program needs Linux %s; the tags promise %s" % (kernel, KERNEL_OF_TAGS))
    return PLATFORMS.format(machine)


class Wheel:
    """A zip file whose bytes depend on nothing but its members and SOURCE_DATE_EPOCH."""

    def __init__(self, path):
        date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        self.date = date.timetuple()[:6]
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = ""

    def add(self, name, content, mode=0o644):
        info = zipfile.ZipInfo(name, self.date)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record += "%s,sha256=%s,%d\n" % (name, digest, len(content))

    def close(self, record_name):
        self.record += record_name + ",,\n"
        self.add(record_name, self.record.encode())
        self.zip.close()


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def files_below(folder):
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(where, name), folder)


def main(version, tree, folder):
    program = read(tree, "bin", "pysample")
    platforms = platform_tags(program)
    path = os.path.join(folder, "pysample-%s-py3-none-%s.whl" % (version, platforms))
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "python")
    data, info = "pysample-%s.data" % version, "pysample-%s.dist-info" % version
    documents = os.path.join(tree, "share", "doc", "pysample")
    wheel = Wheel(path)
    for name in ("__init__.py", "__main__.py"):
        wheel.add("pysample/" + name, read(package, "pysample", name))
    wheel.add(data + "/scripts/pysample", program, 0o755)
    for name in files_below(os.path.join(tree, "share")):
        if not name.startswith("doc/"):
            wheel.add(data + "/data/share/" + name, read(tree, "share", name))
    readme = read(documents, "README.md").decode()
    licences = ["copyright"] + ["licences/" + name
                                for name in files_below(os.path.join(documents, "licences"))]
    for name in licences:
        wheel.add("%s/licenses/%s" % (info, name), read(documents, name))
    listed = "".join("License-File: %s\n" % name for name in licences)
    wheel.add(info + "/METADATA", METADATA.format(version, LICENCES, listed, readme).encode())
    tags = "".join("Tag: py3-none-%s\n" % platform for platform in platforms.split("."))
    wheel.add(info + "/WHEEL", WHEEL.format(tags).encode())
    wheel.close(info + "/RECORD")


main(*sys.argv[1:])
