/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, makes its private anonymous memory shared memory of files in the folder
 * that FILE_MEMORY names, so that it can be paged out where there is no swap. It is for programs that
 * do not fork: a child would share the memory.
 *
 * What is mapped by libc itself, such as the stacks of threads and the heap of malloc(), is not.
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

	/* Not where anything else is asked for: a stack, huge pages, memory that is locked. */
	if ((flags & ~(MAP_FIXED | MAP_NORESERVE)) != own || !(protection & PROT_WRITE))
		return map(addr, length, protection, flags, fd, offset);
	file = open_file(length);
	if (file < 0)
		return map(addr, length, protection, flags, fd, offset);
	memory = map(addr, length, protection, (flags & MAP_FIXED) | MAP_SHARED, file, 0);
	(void)close(file);
	return memory;
}

/* <sys/mman.h> calls one of them by the name of the other where offsets have 64 bits. */
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
