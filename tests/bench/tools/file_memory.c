/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, turns its private anonymous memory into shared memory of files in the
 * folder that FILE_MEMORY names, so that it can be paged out where there is no swap. For programs
 * that do not fork: a child would share the memory.
 *
 * Memory that libc itself maps, such as thread stacks and the heap of malloc(), stays as it is.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *map(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, length, protection, flags, fd, offset);
}

static int open_file(size_t length)
{
	const char *folder = getenv("FILE_MEMORY");
	const int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && ftruncate(fd, (off_t)length)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void *map_file(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	const int own = MAP_PRIVATE | MAP_ANONYMOUS;
	void *memory;
	int file;

	/* Leave all other kinds of mapping alone: stacks, huge pages, locked memory. */
	if ((flags & ~(MAP_FIXED | MAP_NORESERVE)) != own || !(protection & PROT_WRITE))
		return map(addr, length, protection, flags, fd, offset);
	file = open_file(length);
	if (file < 0)
		return map(addr, length, protection, flags, fd, offset);
	memory = map(addr, length, protection, (flags & MAP_FIXED) | MAP_SHARED, file, 0);
	(void)close(file);
	return memory;
}

/* With 64-bit offsets <sys/mman.h> declares one of these under the other's name. */
void *map_by_mmap(void *addr, size_t length, int protection, int flags, int fd,
		  off_t offset) __asm__("mmap") __attribute__((visibility("default")));
void *map_by_mmap64(void *addr, size_t length, int protection, int flags, int fd,
		    off_t offset) __asm__("mmap64") __attribute__((visibility("default")));

void *map_by_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map_file(addr, length, protection, flags, fd, offset);
}

void *map_by_mmap64(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map_file(addr, length, protection, flags, fd, offset);
}
