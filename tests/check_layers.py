#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail if a folder includes a header from a folder above it."""
import pathlib
import re
import sys

# What the files below a folder may include: other folders, or single headers of theirs.
# The longest folder that a file is below counts.
ALLOWED = {
    "procmem": {"procmem"},
    "symbols": {"symbols", "procmem"},
    "sampler": {"sampler", "symbols", "procmem"},
    "sampler/cpython": {"sampler/cpython", "symbols", "procmem"},
    "output": {"output", "sampler/sample.h", "sampler/cpython/base", "procmem/array.h",
               "procmem/byte_cursor.h", "procmem/capabilities.h", "procmem/cleanup.h",
               "procmem/clock.h", "procmem/message.h", "procmem/sysroot.h"},
    "cmd": {"cmd", "output", "sampler", "symbols", "procmem"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


root = pathlib.Path(sys.argv[1])
bad = []
for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
    for file in sorted((root / top).rglob("*.[ch]")):
        path = str(file.relative_to(root))
        allowed = ALLOWED[max((f for f in ALLOWED if is_below(path, f)), key=len)]
        for header in INCLUDE.findall(file.read_text()):
            if not any(is_below(header, folder) for folder in allowed):
                bad.append(f"{path}: must not include {header}")
print("\n".join(bad))
sys.exit(bool(bad))
