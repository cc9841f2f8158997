#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail if a folder includes a header from a folder above it, or if modules include each other."""
import pathlib
import re
import sys

# The folders and single headers that files below a folder may include. The longest matching
# folder applies.
ALLOWED = {
    "procmem": {"procmem"},
    "symbols": {"symbols", "procmem"},
    "sampler": {"sampler", "symbols", "procmem"},
    "sampler/cpython": {"sampler/cpython", "symbols", "procmem"},
    "output": {"output", "sampler/sample.h", "sampler/cpython/base", "procmem/array.h",
               "procmem/byte_cursor.h", "procmem/capabilities.h", "procmem/cleanup.h",
               "procmem/clock.h", "procmem/hash.h", "procmem/message.h", "procmem/sysroot.h"},
    "cmd": {"cmd", "output", "sampler", "symbols", "procmem"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def module(path):
    """The module of a file: a header and its C file are one."""
    return re.sub(r"(\.bpf)?\.[ch]$", "", path)


def circles(edges):
    """The groups of modules that include each other (Tarjan's strongly connected components)."""
    index, low, stack, groups = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node):]
            del stack[-len(group):]
            if len(group) > 1:
                groups.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return groups


root = pathlib.Path(sys.argv[1])
bad = []
edges = {}
for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
    for file in sorted((root / top).rglob("*.[ch]")):
        path = str(file.relative_to(root))
        allowed = ALLOWED[max((f for f in ALLOWED if is_below(path, f)), key=len)]
        for header in INCLUDE.findall(file.read_text()):
            if not any(is_below(header, folder) for folder in allowed):
                bad.append(f"{path}: must not include {header}")
            if module(header) != module(path):
                edges.setdefault(module(path), set()).add(module(header))
bad += [f"these include each other: {', '.join(group)}" for group in circles(edges)]
for line in bad:
    print(line)
sys.exit(bool(bad))
