# SPDX-License-Identifier: MIT
"""Boots a guest made by scripts/testbed --amd64 or --arm64 in qemu-system, without disks or
network: its root is an initramfs, and its console is what is printed."""
import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

BEGIN, END = "== guest begins", "== guest ends: "  # as init prints them
MEMORY = "4G"
NR_CPUS = "2"

HANG_S = 2 * 3600


@dataclasses.dataclass(frozen=True)
class Machine:
    """What emulates an architecture. Everywhere in software, so that it is the same everywhere."""

    name: str  # as uname -m says it
    emulator: list
    console: str


MACHINES = {
    "amd64": Machine("x86_64", ["qemu-system-x86_64", "-cpu", "max"], "ttyS0"),
    # Pointer authentication is on, in a form that is quick to emulate.
    "arm64": Machine("aarch64", ["qemu-system-aarch64", "-machine", "virt,gic-version=max",
                                 "-cpu", "max,pauth-impdef=on"], "ttyAMA0"),
}


class GuestFailed(Exception):
    """It did not get to the end of its command; says what its console ended with."""


def folder_of(architecture):
    return subprocess.run([os.path.join(ROOT, "scripts", "testbed"), "--" + architecture, "--path"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def pack(folder, archive):
    """Append a folder to an initramfs: the kernel unpacks archives one after the other."""
    names = subprocess.run(["find", ".", "-print0"], cwd=folder, stdout=subprocess.PIPE, check=True)
    subprocess.run(["cpio", "-0", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=folder,
                   input=names.stdout, stdout=archive, check=True)


def boot_command(machine, kernel, initrd):
    # A busy machine delays the emulated timer, and Linux would give up: no_timer_check.
    return [*machine.emulator, "-accel", "tcg", "-m", MEMORY, "-smp", NR_CPUS, "-nographic",
            "-nodefaults", "-no-reboot", "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
            "-append", "console=%s quiet panic=-1 no_timer_check" % machine.console]


def lines_between_marks(console):
    """Yield the lines of the command's output, then its exit status, a number."""
    before = []
    for line in console:
        line = line.rstrip("\r\n")
        before.append(line)
        if line == BEGIN:
            break
    else:
        raise GuestFailed("the guest did not boot: " + "\n".join(before[-20:]))
    for line in console:
        line = line.rstrip("\r\n")
        if line.startswith(END):
            yield int(line[len(END):])
            return
        yield line
    raise GuestFailed("the guest ended within its command")


def make_overlay(folder, files, command):
    """Fill a folder with what the guest has besides its root."""
    home = os.path.join(folder, "pysample")
    os.makedirs(home)
    shutil.copy(os.path.join(HERE, "init"), os.path.join(folder, "init"))
    for place, path in files.items():
        place = os.path.join(home, place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, place)
    with open(os.path.join(home, "command"), "w", encoding="utf-8") as file:
        file.write(command + "\n")


@contextlib.contextmanager
def booted(architecture, files, command):
    """Boot the guest with files, {place below /pysample: path here}, and run a shell command in
    /pysample. The value is lines_between_marks()."""
    made = folder_of(architecture)
    with tempfile.TemporaryDirectory(prefix="pysample-guest-") as folder:
        overlay, initrd = os.path.join(folder, "overlay"), os.path.join(folder, "initrd")
        make_overlay(overlay, files, command)
        with open(initrd, "wb") as archive:
            with open(os.path.join(made, "root.cpio"), "rb") as root:
                shutil.copyfileobj(root, archive)
            archive.flush()
            pack(overlay, archive)
        process = subprocess.Popen(
            boot_command(MACHINES[architecture], os.path.join(made, "vmlinuz"), initrd),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
        guard = threading.Timer(HANG_S, process.kill)
        guard.start()
        try:
            yield lines_between_marks(process.stdout)
        finally:
            guard.cancel()
            process.kill()
            process.wait()
            process.stdout.close()
