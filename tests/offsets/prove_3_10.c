/* SPDX-License-Identifier: MIT */
#define TABLE version_3_10
#include "tests/offsets/prove_heap.h"
