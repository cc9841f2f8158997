# SPDX-License-Identifier: MIT
"""Keeps what a run has measured in a file, so that a run that was stopped can be resumed."""
import dataclasses
import hashlib
import json
import os

import support

from bench.row import Row
from bench.work import WorkRow

FORMAT = 2


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def settings(tools, options):
    """What must not change within a run."""
    return {"pysample": digest(tools.pysample), "seconds": options.seconds, "turns": options.turns,
            "stops": options.stops, "quick": options.quick, "rates": options.rates,
            "pairs": options.pairs, "engines": list(options.engines),
            "truth_meanwhile": options.truth_meanwhile}


@dataclasses.dataclass
class Results:
    path: str | None
    settings: dict
    machine: str
    rows: list = dataclasses.field(default_factory=list)
    work: list = dataclasses.field(default_factory=list)
    done: set = dataclasses.field(default_factory=set)  # units of measurement, as text

    def add(self, unit, rows=(), work=()):
        self.rows += rows
        self.work += work
        self.done.add(unit)
        if self.path:
            self.save()

    def save(self):
        content = {"format": FORMAT, "machine": self.machine, "settings": self.settings,
                   "done": sorted(self.done), "rows": [vars(row) for row in self.rows],
                   "work": [vars(row) for row in self.work]}
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(self.path + ".new", self.path)


def known(kind, values):
    """An object made of what a file has of it. Fields that only another version of this script
    has are left out, and those that it did not write are None."""
    return kind(**{field.name: values.get(field.name) for field in dataclasses.fields(kind)})


def load(path):
    """The results in a file. RuntimeError if it has another format."""
    content = json.loads(support.read(path))
    if content.get("format") != FORMAT:
        raise RuntimeError("%s was written by another version of this script" % path)
    return Results(path, content["settings"], content["machine"],
                   [known(Row, row) for row in content["rows"]],
                   [known(WorkRow, row) for row in content["work"]], set(content["done"]))


def begin(path, resumed, machine, wanted):
    """Empty results, or those of the run to be resumed. RuntimeError if the file is of another
    run."""
    if not resumed or not os.path.exists(path):
        return Results(path, wanted, machine)
    found = load(path)
    if found.settings != wanted:
        raise RuntimeError("%s was written with another build of pysample or other options; "
                           "remove it, or use the same ones" % path)
    return found
