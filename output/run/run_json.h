/* SPDX-License-Identifier: MIT */
/* A run as a value in a JSON document. */
#pragma once

#include "output/run/run.h"
#include "output/text/json.h"

/* Append an object of the pairs of run_for_each_pair(), all as strings. Errors are kept in json. */
void run_append_json(struct json *json, const struct run *run);
