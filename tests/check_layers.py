#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail if a folder includes a header from a folder above it."""
import pathlib
import re
import sys

ALLOWED = {
    "procmem": {"procmem"},
    "symbols": {"symbols", "procmem"},
    "sampler": {"sampler", "symbols", "procmem"},
    "output": {"output", "sampler/sample.h", "procmem/capabilities.h", "procmem/cleanup.h",
               "procmem/message.h", "procmem/array.h", "procmem/byte_cursor.h",
               "procmem/sysroot.h"},
    "cmd": {"cmd", "output", "sampler", "symbols", "procmem"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

root = pathlib.Path(sys.argv[1])
bad = [
    f"{path.relative_to(root)}: must not include {header}"
    for folder, allowed in ALLOWED.items()
    for path in sorted((root / folder).rglob("*.[ch]"))
    for header in INCLUDE.findall(path.read_text())
    if header not in allowed and header.split("/")[0] not in allowed
]
print("\n".join(bad))
sys.exit(bool(bad))
