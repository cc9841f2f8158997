/* SPDX-License-Identifier: MIT */
/* The machine that pysample was built for. Targets of other machines are refused. */
#pragma once

#include <elf.h>

#if defined(__x86_64__)
#define MACHINE_ELF  EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE_ELF  EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "the ELF machine of this architecture is not known"
#endif
