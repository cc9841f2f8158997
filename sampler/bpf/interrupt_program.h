/* SPDX-License-Identifier: MIT */
/* The BPF program as bpftool hands it over: generated code, whose warnings are not ours. */
#pragma once
#pragma GCC system_header

#include "sampler/bpf/interrupt_record.h"

#include "sampler/bpf/interrupt_walk.skel.h"
