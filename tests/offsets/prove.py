#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compile the offset proofs against every CPython header set that is found.

usage: prove.py SOURCE_ROOT CC

A proof that does not compile means that a number of ours is wrong. Exit status: 0 if all
are proved, 1 if not, 77 (skipped) if there are no headers at all.
"""
import os
import pathlib
import re
import subprocess
import sys

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-w", "-c", "-o", os.devnull]


def minors(root):
    """The minor versions that have tables."""
    header = (root / "sampler/cpython/layout/offsets.h").read_text()
    oldest, newest = (int(re.search(rf"{name}_MINOR = (\d+)", header)[1])
                      for name in ("OLDEST", "NEWEST"))
    return range(oldest, newest + 1)


def testbed(root):
    """The folder of scripts/testbed, which may not exist."""
    done = subprocess.run([root / "scripts/testbed", "--path"], capture_output=True, text=True)
    return pathlib.Path(done.stdout.strip() or "/nonexistent")


def include_folders(root, version, suffix=""):
    """Yield each list of include folders that is a complete set of headers of version."""
    name = f"include/python{version}{suffix}" + ("m" if version in ("3.6", "3.7") else "")
    sid = testbed(root) / "usr"
    candidates = [pathlib.Path("/usr") / name, pathlib.Path("/usr/local") / name, sid / name,
                  sid / "local" / name]
    candidates += sorted((pathlib.Path.home() / ".pyenv/versions").glob(f"*/{name}"))
    for folder in candidates:
        # A distribution may have the public headers without the internal ones.
        if not (folder / "Python.h").exists() or (
                version != "3.6" and not (folder / "internal").exists()):
            continue
        folders = [folder, folder / "internal"]
        if folder.is_relative_to(sid):  # its pyconfig.h includes the one of the architecture
            folders.append(sid / "include")
        yield folders


def prove(root, cc, version, folders, flavour=()):
    """Whether the tables of version agree with the headers in folders."""
    source = root / "tests/offsets/prove.c"
    minor = int(version.split(".")[1])
    defines = [f"-DMINOR={minor}"]
    defines += [f"-DSINCE_{other}={int(other <= minor)}" for other in minors(root)]
    # The third folder holds a whole libc, too, so it comes after the system's own.
    includes = [flag for f in folders[:2] for flag in ("-I", f)]
    includes += [flag for f in folders[2:] for flag in ("-idirafter", f)]
    done = subprocess.run([*cc, *FLAGS, *defines, *flavour, "-I", root, *includes, source],
                          capture_output=True, text=True)
    print(f"{'proved' if done.returncode == 0 else 'WRONG'}: {version} by {folders[0]}", *flavour)
    print(done.stderr, end="")
    return done.returncode == 0


def flavours(version, folders):
    """Yield the flags of each other build that the headers in folders serve."""
    if folders[0].name.endswith(("d", "t")):
        yield []
    if int(version.split(".")[1]) >= 13 and not folders[0].name.endswith("t"):
        yield ["-DPy_GIL_DISABLED=1"]


def main():
    root = pathlib.Path(sys.argv[1])
    cc = sys.argv[2:] or ["cc"]
    results = []
    for version in (f"3.{minor}" for minor in minors(root)):
        found = list(include_folders(root, version))
        if not found:
            print(f"not proved here: {version} (no headers)")
        results += [prove(root, cc, version, folders) for folders in found]
        # Debug builds have their own headers. Free-threaded builds share the release headers and
        # have their own pyconfig.h.
        found += [folders for suffix in ("d", "t")
                  for folders in include_folders(root, version, suffix)]
        results += [prove(root, cc, version, folders, flavour) for folders in found
                    for flavour in flavours(version, folders)]
    if not results:
        return 77
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
