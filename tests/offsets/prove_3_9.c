/* SPDX-License-Identifier: MIT */
#define TABLE version_3_9
#include "tests/offsets/prove_heap.h"
