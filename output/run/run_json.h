/* SPDX-License-Identifier: MIT */
/* What is known of a run, as a value in a JSON document. */
#pragma once

#include "output/run/run.h"
#include "output/text/json.h"

/* Append an object of the pairs of run_tell(), all strings; errors stay with the document. */
void run_append_json(struct json *json, const struct run *run);
