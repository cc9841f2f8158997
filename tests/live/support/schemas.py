# SPDX-License-Identifier: MIT
"""The JSON Schemas in docs/."""
import functools
import json
import os
import unittest

from support import ROOT, read

NAMES = ("profile.schema.json", "dump.schema.json")


@functools.lru_cache(maxsize=None)
def validator(name):
    """A validator for one of NAMES, in which the others can be referred to."""
    try:
        import jsonschema
    except ImportError:
        raise unittest.SkipTest("no jsonschema here (python3-jsonschema)") from None
    schemas = {one: json.loads(read(os.path.join(ROOT, "docs", one))) for one in NAMES}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    schema = schemas.pop(name)
    schema["$defs"].update(schemas)
    return jsonschema.Draft202012Validator(schema)


def validate(value, name):
    """Raise an error that says where value does not have the form that a schema describes."""
    validator(name).validate(value)
