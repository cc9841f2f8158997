#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail if a document links to what is not there, names a missing file, or is too long.

Commands of the repository's own scripts are checked against their --help;
tests/live/test_documents.py runs those of pysample."""
import pathlib
import re
import subprocess
import sys

MAX_BYTES = {"README.md": 12 * 1024, "docs/architecture.md": 30 * 1024}
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
# In backticks: a file of the source, with or without its folder.
SOURCE = re.compile(r"`([\w./-]+\.(?:c|h|def|py|mjs))`")
# Files of CPython and other projects, those that a reader has, and placeholders.
FOREIGN = re.compile(r"^(cpython|internal|Lib|Objects|Python)/|pycore_|^(frameobject|opcode_ids|pystate|dwarf|"
                     r"libunwind-dynamic)\.h$|^unwind-dw2|^(app|orders|pack)\.py$|[A-Z]{4}")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def anchors(text):
    """The names that headings get: lower case, words joined by dashes."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.M)
    plain = [re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in plain}


def wrong_links(root, path, text):
    for target in LINK.findall(without_code(text)):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists():
            yield "link to %s" % target
        elif anchor and anchor not in anchors(other.read_text()):
            yield "link to %s: no such heading" % target


def wrong_names(files, text):
    for name in sorted(set(SOURCE.findall(text))):
        if not FOREIGN.search(name) and not any(
                file == name or file.endswith("/" + name) for file in files):
            yield "names %s" % name


def wrong_commands(root, text):
    """Those of scripts/ in blocks of shell: each exists, and its --help has the options."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M):
        for name, rest in re.findall(r"(?:^|[;&|] *)(scripts/[\w-]+)([^#;&|\n]*)", block, re.M):
            if not (root / name).exists():
                yield "runs %s" % name
                continue
            words = rest.split()
            sub = words[:1] if words and re.fullmatch(r"[a-z]+", words[0]) else []
            known = subprocess.run([root / name, *sub, "--help"], capture_output=True, text=True,
                                   stdin=subprocess.DEVNULL).stdout
            for option in re.findall(r"(?<!\S)--?[\w-]+", rest):
                if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(option), known):
                    yield "%s: %s is not in its --help" % (" ".join([name, *sub]), option)


root = pathlib.Path(sys.argv[1]).resolve()
files = [str(path.relative_to(root)) for folder in ("cmd", "output", "procmem", "sampler", "symbols",
                                                    "tests", "scripts")
         for path in (root / folder).rglob("*") if path.is_file()]
bad = []
for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("output/**/*.md")]):
    text = path.read_text()
    name = str(path.relative_to(root))
    limit = MAX_BYTES.get(name)
    if limit and len(text.encode()) > limit:
        bad.append("%s: %d bytes, more than %d" % (name, len(text.encode()), limit))
    for wrong in (*wrong_links(root, path, text), *wrong_names(files, text),
                  *wrong_commands(root, text)):
        bad.append("%s: %s" % (name, wrong))
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
