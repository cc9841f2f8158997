#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Join the page's sources into a C file (README.md), or, with --parts, into its two strings.

usage: bundle.py OUT.c
       bundle.py --parts BLOB LOADER
"""
import base64
import gzip
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ["model", "colour", "stage", "flame", "chart", "strip", "table", "source", "export", "page"]


def without_comments(text, line_comments):
    """Text without block comments that begin a line, // lines, indentation and empty lines."""
    text = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*\n", "", text, flags=re.S | re.M)
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(l for l in lines if l and not (line_comments and l.startswith("//")))


def module(name):
    text = (HERE / f"{name}.mjs").read_text(encoding="utf-8")
    text = re.sub(r"^import\b[^;]*;\n", "", text, flags=re.M)
    return re.sub(r"^export ", "", text, flags=re.M)


def script():
    body = without_comments("\n".join(module(name) for name in MODULES), True)
    return '(()=>{"use strict";\n' + body + "\n})();"


def blob():
    css = without_comments((HERE / "viewer.css").read_text(encoding="utf-8"), False)
    html = (HERE / "viewer.html").read_text(encoding="utf-8")
    html = re.sub(r"<!--.*?-->", "", html, flags=re.S)
    html = "\n".join(line.strip() for line in html.split("\n") if line.strip())
    page = "\0".join([css, html, script()]).encode()
    return base64.b64encode(gzip.compress(page, 9, mtime=0)).decode()


def loader():
    text = without_comments((HERE / "loader.js").read_text(encoding="utf-8"), True)
    assert "</" not in text
    return text


def c_string(name, text):
    """A definition of a string as an array of bytes: literals have a limit."""
    data = text.encode() + b"\0"
    rows = (data[i : i + 24] for i in range(0, len(data), 24))
    body = "\n".join("\t" + "".join(f"{byte}," for byte in row) for row in rows)
    return f"const char {name}[{len(data)}] = {{\n{body}\n}};\n"


def main():
    if sys.argv[1] == "--parts":
        pathlib.Path(sys.argv[2]).write_text(blob(), encoding="utf-8")
        pathlib.Path(sys.argv[3]).write_text(loader(), encoding="utf-8")
        return
    head = '/* Made by output/assets/bundle.py. */\n#include "output/viewer.h"\n\n'
    text = head + c_string("viewer_blob", blob()) + "\n" + c_string("viewer_loader", loader())
    pathlib.Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
