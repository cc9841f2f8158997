/* SPDX-License-Identifier: MIT */
/* The BPF program as bpftool hands it over: code that it generates, whose warnings are its own. */
#pragma once
#pragma GCC system_header

#include "sampler/bpf/interrupt_walk.skel.h"
