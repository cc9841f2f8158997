# SPDX-License-Identifier: MIT
"""Interpreters whose files were changed, and root file systems that hold only an interpreter.

A changed interpreter is a copy of its executable, and of its libpython if it has one, in a
separate folder. PYTHONHOME and LD_LIBRARY_PATH let it find the rest.
"""
import contextlib
import dataclasses
import os
import re
import shutil
import subprocess

import support
from support import Interpreter


class NotPossible(Exception):
    """The reason why a test cannot run here."""


@dataclasses.dataclass
class Copy:
    """A copy of an interpreter's own files in a separate folder."""

    interpreter: Interpreter
    folder: str  # as seen from outside its root
    files: list  # paths: the executable, and libpython in a shared build
    environment: dict


def files_of(interpreter):
    """Its executable and, in a shared build, its libpython, as seen from outside its root."""
    executable = os.path.realpath(interpreter.root + interpreter.path)
    with open(executable, "rb") as file:
        needed = re.findall(rb"\0(libpython3\.\d+[a-z]*\.so[.0-9]*)\0", file.read())
    libraries = os.path.join(os.path.dirname(os.path.dirname(executable)), "lib")
    paths = [os.path.join(libraries, os.fsdecode(name)) for name in needed]
    return [executable] + [path for path in paths if os.path.exists(path)][:1]


def prefix_of(interpreter):
    """The prefix of its library, as seen from inside its root."""
    return os.path.dirname(os.path.dirname(files_of(interpreter)[0]))[len(interpreter.root):]


@contextlib.contextmanager
def copied(interpreter, into=None):
    """A copy in the interpreter's root, or in that of into, an interpreter that sees the same
    files."""
    into = into or interpreter
    with support.fresh_folder(into.root) as (outside, inside):
        files = [shutil.copy(path, outside) for path in files_of(interpreter)]
        for path in files:
            os.chmod(path, 0o755)
        copy = dataclasses.replace(into, path=os.path.join(inside, os.path.basename(files[0])))
        yield Copy(copy, outside, files, {"PYTHONHOME": prefix_of(interpreter),
                                          "LD_LIBRARY_PATH": inside})


# ---- changes ----------------------------------------------------------------------------


def strip(copy):
    if not shutil.which("strip"):
        raise NotPossible("no strip here (binutils)")
    subprocess.run(["strip", *copy.files], check=True, stderr=subprocess.DEVNULL)


# Offsets in an ELF64 header: e_shoff, and e_shnum with e_shstrndx after it (elf(5)).
SHOFF, SHOFF_BYTES = 0x28, 8
SHNUM, SHNUM_BYTES = 0x3C, 4


def drop_sections(copy):
    for path in copy.files:
        with open(path, "r+b") as file:
            if file.read(5) != b"\x7fELF\x02":
                raise NotPossible("only for 64-bit ELF files")
            for offset, size in ((SHOFF, SHOFF_BYTES), (SHNUM, SHNUM_BYTES)):
                file.seek(offset)
                file.write(bytes(size))


def replace_bytes(copy, old, new):
    """Replace every occurrence in all files. new is as long as old."""
    assert len(old) == len(new)
    for path in copy.files:
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content.replace(old, new))


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True)
    return bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes.stdout).group(1))


def forget_build_ids(copy):
    """Change the build IDs, so that installed debug files no longer match."""
    for build_id in [build_id_of(path) for path in copy.files]:
        replace_bytes(copy, build_id, build_id[::-1])


def rename(copy):
    """Rename the files. A link still leads to libpython by its name; its mapping has the new
    name."""
    for path, name in zip(list(copy.files), ("app", "engine.so")):
        new = os.path.join(copy.folder, name)
        os.rename(path, new)
        if copy.files.index(path):
            os.symlink(name, path)
        copy.files[copy.files.index(path)] = new
    copy.interpreter = dataclasses.replace(
        copy.interpreter, path=copy.files[0][len(copy.interpreter.root):])


# ---- roots ------------------------------------------------------------------------------

# $1 is the new root. Then come the folders to bind into it, "--" and a command.
ENTER_ROOT = """
set -e
root=$1
shift
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do
	mount --rbind "$1" "$root$1"
	shift
done
shift
exec "$@"
"""


def make_root(root, prefix):
    """Make a minimal root. Return the folders that must be bound into it."""
    os.mkdir(os.path.join(root, "tmp"))
    os.mkdir(os.path.join(root, "proc"))
    bound = ["/usr"] + ([prefix] if prefix != "/usr" else [])
    for name in ("/bin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            os.symlink(os.readlink(name), root + name)
        elif os.path.isdir(name):
            bound.append(name)
    for path in bound:
        os.makedirs(root + path)
    return bound


@contextlib.contextmanager
def rooted(interpreter):
    """The interpreter in a separate root, and the command that makes PID and mount namespaces for
    it. A testbed's interpreter has such a root already."""
    if os.geteuid() != 0:
        raise NotPossible("needs root: namespaces, a separate root, another user")
    if interpreter.root:
        yield interpreter, support.IN_A_CONTAINER
        return
    with support.fresh_folder() as (root, _):
        enter = ["sh", "-c", ENTER_ROOT, "sh", root, *make_root(root, prefix_of(interpreter)), "--"]
        yield dataclasses.replace(interpreter, root=root), support.IN_A_CONTAINER + enter
