/* SPDX-License-Identifier: MIT */
/*
 * Says in the dumps of a tree what each waiting thread waits in, and who holds what it waits for;
 * and concludes which threads wait for each other.
 */
#pragma once

#include <stdint.h>

#include "cmd/dump/tree.h"

/* Empty when all zero. */
struct findings {
	char **sentences; /* owned, like the array; control characters are not escaped */
	uint32_t nr_sentences, max_sentences;
};

/*
 * Describe the threads of a tree, after tree_take(), and add what follows from it to findings.
 * Names of processes are used if with_processes. Returns 0 or -ENOMEM.
 */
int waiting_describe(struct tree *tree, bool with_processes, struct findings *findings);

/* Free and empty the findings. */
void findings_done(struct findings *findings);
