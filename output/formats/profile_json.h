/* SPDX-License-Identifier: MIT */
/*
 * A profile as one small JSON object, for scripts and language models: what was sampled, how exact
 * it is, the hot functions with their callers, callees and lines, and the tree of calls. Functions
 * and nodes with hardly any time are left out, which is said. docs/profile.schema.json describes
 * the members; only an incompatible change increases "version".
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/* Write the profile and flush. Returns 0, -ENOMEM, or the stream's error as negative errno. */
int profile_json_write(const struct artefact *artefact, FILE *out);
