/* SPDX-License-Identifier: MIT */
/* Explains why the memory of a process may not be read. */
#pragma once

#include "procmem/message.h"
#include "procmem/process.h"

/*
 * Explain in one sentence, with the remedy, why an open or a read of the process's memory gave
 * -EPERM: another user's or group's process, Yama's ptrace_scope, a missing CAP_SYS_PTRACE, a user
 * namespace, a process that made itself undumpable or has more capabilities, a seccomp filter or a
 * security module. Only reads settings. Source: ptrace(2), "Ptrace access mode checking".
 */
void permission_explain(const struct process *process, struct message *ret_message);
