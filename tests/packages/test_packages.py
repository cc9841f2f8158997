# SPDX-License-Identifier: MIT
"""The packages, installed as their users do, and the lines of README that say how."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile

import roots
import support

# A program to profile, and what its profile must show.
WORK = "def work():\n    return sum(i * i for i in range(3000000))\nwork()\n"


def package(pattern):
    found, = glob.glob(os.path.join(roots.packages(), pattern))
    return found


def version():
    return roots.run(roots.program(), "--version").split()[1]


class Wheel(unittest.TestCase):
    is_quick = False

    # Arguments: the interpreter, and a folder with the wheel.
    COMMANDS = """\
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/env"
PATH=$work/env/bin:$PATH
pip install --no-index "$2"/pysample-*_x86_64.whl >&2
cat >"$work/work.py" <<'WORK'
%s
WORK
pysample --version
python -m pysample --version
pysample run -o "$work/out.html" python "$work/work.py"
python -m pysample run -o "$work/other.html" python "$work/work.py"
for page in "$work/out.html" "$work/other.html"; do
	grep -c '<script' "$page"
done
ls "$work/env/share/man/man1"
pip uninstall -y pysample >&2
ls "$work/env/bin"
""" % WORK

    def check(self, python):
        """Install the wheel into a new environment, and use it."""
        words = ["sh", "-c", self.COMMANDS, "sh", python.path]
        if python.root:
            printed = roots.in_root(python.root, *words, "/packages")
        else:
            printed = roots.run(*words, roots.packages())
        # The pages have the same scripts.
        self.assertEqual(re.findall(r"(?m)^pysample %s .*$|^\d+$|^pysample.1$|^pysample$"
                                    % re.escape(version()), printed),
                         [roots.run(roots.program(), "--version").strip()] * 2 + ["3"] * 2
                         + ["pysample.1"])

    def test_old_and_new_versions(self):
        """As the issue of wheels has it: 3.8, 3.11 and 3.15."""
        for minor in "3.8", "3.11", "3.15":
            for python in support.supported_interpreters():
                command = python.command()
                if python.minor == minor and subprocess.run(
                        [*command, "-c", "import ensurepip, venv"],
                        capture_output=True).returncode == 0:
                    with self.subTest(python=str(python)):
                        self.check(python)
                    break
            else:
                with self.subTest(python=minor):
                    self.skipTest("no %s with venv here" % minor)

    # Arguments: a Python with pip, and one for musl, which has no zlib and so cannot run pip.
    TAGS = """\
set -eu
work=$(mktemp -d)
"$1" -m venv "$work"
PYTHONPATH=$(echo "$work"/lib/python3*/site-packages) "$2" -c '
from pip._vendor.packaging.tags import sys_tags
print(*sys_tags(), sep="\\n")'
"""

    def test_the_tags_are_those_of_musl_and_glibc(self):
        musl = support.musl_interpreter()
        glibc = next((one for one in support.supported_interpreters()
                      if one.minor == "3.15" and one.root), None)
        if not musl or not glibc:
            self.skipTest("not tested here: musl (run scripts/testbed to see why)")
        name = os.path.basename(package("*x86_64.whl"))[:-len(".whl")]
        platforms = name.split("-")[4].split(".")
        for python in musl, glibc:
            with self.subTest(python=str(python)):
                tags = roots.in_root(musl.root, "sh", "-c", self.TAGS, "sh", glibc.path,
                                     python.path).splitlines()
                self.assertTrue({"py3-none-" + platform for platform in platforms} & set(tags))

    def test_a_folder_of_packages(self):
        """pip install --target puts programs elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            roots.run("/usr/bin/python3", "-m", "pip", "install", "--no-index", "--target", folder,
                      package("*x86_64.whl"))
            self.assertIn(version(), roots.run("/usr/bin/python3", "-m", "pysample", "--version",
                                               env={"PYTHONPATH": folder}))

    def test_the_program_is_looked_for(self):
        with zipfile.ZipFile(package("*x86_64.whl")) as wheel, \
                tempfile.TemporaryDirectory() as folder:
            wheel.extractall(folder, [name for name in wheel.namelist()
                                      if name.startswith("pysample/")])
            done = subprocess.run(["/usr/bin/python3", "-m", "pysample"], capture_output=True,
                                  text=True, env={"PYTHONPATH": folder, "HOME": folder})
            self.assertEqual((done.returncode, done.stderr), (
                1, "pysample: the program is missing; install the package pysample again\n"))

    def test_no_wheel_of_a_program_that_needs_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/bin")
            shutil.copy(support.PYSAMPLE, folder + "/bin/pysample")
            done = subprocess.run(
                ["/usr/bin/python3", support.ROOT + "/scripts/lib/make_wheel.py", "1", folder,
                 folder], capture_output=True, text=True)
            self.assertIn("is not static", done.stderr)
            self.assertEqual(glob.glob(folder + "/*.whl"), [])


class DebianPackage(unittest.TestCase):
    is_quick = False
    COMMANDS = """\
set -eu
dpkg -i /packages/pysample_*_amd64.deb >&2
dpkg --verify pysample
cat >/tmp/work.py <<'WORK'
%s
WORK
pysample run -r 1000 -f collapsed python3 /tmp/work.py
python3 -c 'import os; print(os.listxattr("/usr/bin/pysample"))'
dpkg -r pysample >&2
[ ! -e /usr/bin/pysample ]
""" % WORK

    def test_bookworm(self):
        self.check("bookworm")

    def test_sid(self):
        self.check("sid")

    def check(self, suite):
        printed = roots.in_root(roots.root_of(suite), "sh", "-c", self.COMMANDS)
        self.assertRegex(printed, r"work \(/tmp/work.py:1\)")
        self.assertRegex(printed, r"(?m)^\[\]$")  # no capabilities

    def test_lintian(self):
        """As another user: lintian warns when root runs it."""
        if not shutil.which("lintian"):
            raise unittest.SkipTest("no lintian here")
        with support.fresh_folder() as (folder, _):
            for path in glob.glob(os.path.join(roots.packages(), "*.deb")):
                printed = roots.run(*(support.AS_NOBODY if os.geteuid() == 0 else []), "lintian",
                                    shutil.copy(path, folder), env={**os.environ, "HOME": folder})
                self.assertEqual(printed, "")


class Readme(unittest.TestCase):
    """The lines of README, by somebody with a bare Debian, lead to a flame graph."""

    is_quick = False
    PREPARED = """\
set -eu
python3 -m venv /env
PATH=/env/bin:$PATH
cp /packages/* .
cat >app.py <<'WORK'
%s
WORK
%%s
pysample run -o out.html python3 app.py
grep -o 'work (/root/app.py:1)' out.html
""" % WORK

    def lines(self):
        section = re.search(r"(?s)\n## Install\n(.*?)\n## ",
                            support.read(os.path.join(support.ROOT, "README.md"))).group(1)
        return re.search(r"(?s)```sh\n(.*?)```", section).group(1).splitlines()

    def test_each_line(self):
        lines = self.lines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            with self.subTest(line=line):
                page = roots.in_root(roots.root_of("bookworm"), "sh", "-c",
                                     "cd /root\n" + self.PREPARED % line)
                self.assertRegex(page, "(?m)^work ")


class Reproducible(unittest.TestCase):
    is_quick = False

    def test_two_builds_are_the_same(self):
        """The second one of a copy of the sources, in another place."""
        files = roots.run("git", "-c", "safe.directory=" + support.ROOT, "-C", support.ROOT,
                          "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            for name in files:
                if os.path.isfile(os.path.join(support.ROOT, name)):
                    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                    shutil.copy(os.path.join(support.ROOT, name), os.path.join(folder, name))
            date = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
            roots.script("package", "--output", folder + "/first", env=date)
            roots.run(folder + "/scripts/package", "--output", folder + "/second", env=date)
            first, second = ({os.path.basename(path): hashlib.sha256(open(path, "rb").read())
                              .hexdigest() for path in glob.glob("%s/%s/*" % (folder, one))}
                             for one in ("first", "second"))
            self.assertEqual(len(first), 6)
            self.assertEqual(first, second)
