# SPDX-License-Identifier: MIT
"""Bare Debian roots, the packages that scripts/package makes, and commands run with both."""
import functools
import os
import shutil
import subprocess
import unittest

import support

MACHINES = "x86_64", "aarch64"
# Making the packages compiles everything twice, and making the roots downloads them.
PATIENCE_S = 3000

# Runs a command in a root that is not changed by it. Arguments: the root, a folder of ours to
# mount there as /packages, and the command.
IN_ROOT = """\
root=$1 packages=$2
shift 2
work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" "$work/root"
mkdir -p "$work/root/packages" "$work/root/proc"
mount --bind "$packages" "$work/root/packages"
mount --rbind /proc "$work/root/proc"
mount --rbind /sys "$work/root/sys" 2>/dev/null || : # a root without it
status=0
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
	chroot "$work/root" "$@" || status=$?
umount --lazy --recursive "$work"
rmdir "$work"
exit $status
"""


def run(*command, allowed=(0,), **options):
    """What the command prints to both streams. It must end with a status that is allowed."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                          encoding="utf-8", errors="replace", **options)
    if done.returncode not in allowed:
        raise AssertionError("%s: %d\n%s" % (" ".join(map(str, command))[:200], done.returncode,
                                             done.stdout[-3000:]))
    return done.stdout


def script(name, *args, **options):
    return run(os.path.join(support.ROOT, "scripts", name), *args, **options)


@functools.lru_cache(maxsize=None)
def packages():
    """The folder with all packages, made of the sources as they are now."""
    if not shutil.which("dpkg-deb"):
        raise unittest.SkipTest("packages are made on Debian")
    if os.uname().machine != "x86_64":
        raise unittest.SkipTest("the packages are tested on x86-64")
    folder = os.path.join(support.ROOT, "build-package", "tested")
    script("package", "--output", folder)
    return folder


@functools.lru_cache(maxsize=None)
def root_of(suite):
    """A bare root of a Debian release, with nothing but Python."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("Debian roots need root")
    folder, = [line for line in script("testbed", "--roots").splitlines()
               if line.endswith("/root-" + suite)]
    return folder


def program(machine="x86_64"):
    packages()
    return os.path.join(support.ROOT, "build-package", "pysample-" + machine)


def in_root(root, *command, mounted=None, allowed=(0,)):
    """What a command prints in a copy of the root, where /packages is mounted."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        raise unittest.SkipTest("mount namespaces are not allowed")
    return run("unshare", "--mount", "sh", "-euc", IN_ROOT, "sh", root, mounted or packages(),
               *command, allowed=allowed)
