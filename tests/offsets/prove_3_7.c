/* SPDX-License-Identifier: MIT */
#define TABLE version_3_7
#include "tests/offsets/prove_heap.h"
