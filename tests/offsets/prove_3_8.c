/* SPDX-License-Identifier: MIT */
#define TABLE version_3_8
#include "tests/offsets/prove_heap.h"
