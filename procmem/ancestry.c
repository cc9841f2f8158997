/* SPDX-License-Identifier: MIT */
#include "procmem/ancestry.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/*
 * What identifies one exec: the auxiliary vector and the bytes at AT_RANDOM. Linux 6 writes some 20
 * pairs of 16 bytes; of a longer vector only the first 127 pairs are compared.
 */
enum { MAX_VECTOR_BYTES = 2048, RANDOM_BYTES = 16 };

struct program_identity {
	char vector[MAX_VECTOR_BYTES];
	size_t vector_bytes;
	char random[RANDOM_BYTES];
};

/* Returns the value of an entry of the vector, or 0 if there is none. */
static uint64_t vector_value(const struct program_identity *identity, uint64_t type)
{
	Elf64_auxv_t entry;

	for (size_t at = 0; at + sizeof(entry) <= identity->vector_bytes; at += sizeof(entry)) {
		memcpy(&entry, identity->vector + at, sizeof(entry));
		if (entry.a_type == type)
			return entry.a_un.a_val;
	}
	return 0;
}

static int read_identity(const struct process *process, struct program_identity *ret_identity)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	ssize_t nr;
	pid_t tid;

	if (process_live_thread(process, &tid))
		return -ESRCH;
	process_thread_path(name, tid, "auxv");
	nr = process_read_file(process, name, ret_identity->vector, sizeof(ret_identity->vector));
	if (nr < 0)
		return (int)nr;
	ret_identity->vector_bytes = (size_t)nr;
	const uint64_t addr = vector_value(ret_identity, AT_RANDOM);

	if (process->memory_fd < 0)
		return -EPERM;
	if (!addr || pread(process->memory_fd, ret_identity->random, RANDOM_BYTES, (off_t)addr) !=
			     RANDOM_BYTES)
		return -ENOENT;
	return 0;
}

/* Whether both processes run since the same exec. Returns 0, or -ENOENT if not. */
static int same_program(const struct process *one, const struct process *two)
{
	struct program_identity first, second;
	int err = read_identity(one, &first);

	if (!err)
		err = read_identity(two, &second);
	if (err)
		return err;
	return first.vector_bytes == second.vector_bytes &&
			       memcmp(first.vector, second.vector, first.vector_bytes) == 0 &&
			       memcmp(first.random, second.random, RANDOM_BYTES) == 0
		       ? 0
		       : -ENOENT;
}

int ancestry_parent(const struct process *child, struct process *ret_parent)
{
	struct process parent = PROCESS_CLOSED;
	cleanup_free char *status = NULL;
	uint64_t pid;
	size_t size;
	int err =
		process_read_whole_file(child, "status", PROCFILE_STATUS_MAX_BYTES, &status, &size);

	if (err)
		return err;
	if (!procfile_number(status, "PPid", 0, 10, &pid) || pid == 0)
		return -ENOENT;
	err = process_open((pid_t)pid, &parent, NULL);
	if (!err)
		err = same_program(child, &parent);
	if (err)
		process_close(&parent);
	else
		*ret_parent = parent;
	return err;
}
