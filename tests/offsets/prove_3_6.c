/* SPDX-License-Identifier: MIT */
#define TABLE version_3_6
#include "tests/offsets/prove_heap.h"
