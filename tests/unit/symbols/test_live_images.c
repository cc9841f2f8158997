/* SPDX-License-Identifier: MIT */
#include "symbols/elf/live_images.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "tests/support/debug_folder.h"
#include "tests/support/image_file.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

/* A mapping that does not exist in map_files, so only its path and inode can identify the file. */
static struct mapping forge(const char *path)
{
	struct stat st;

	cr_assert(zero(int, stat(path, &st)), "%s", path);
	return (struct mapping){.start = 0x1000,
				.end = 0x2000,
				.inode = st.st_ino,
				.dev_major = major(st.st_dev),
				.dev_minor = minor(st.st_dev),
				.path = path};
}

Test(live_images, path_needs_the_mapped_device_and_inode)
{
	struct library library = find_library();
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct image *image = NULL;
	struct mapping mapping = forge(library.path);

	process = own_process_open();
	live_images_init(&images, &process);
	cr_expect(zero(int, image_source_open(&images.source, &mapping, &image)));
	image_close(image);

	mapping.inode++;
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT), "inode");
	mapping = forge(library.path);
	mapping.dev_minor++;
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT), "minor");
	mapping = forge(library.path);
	mapping.dev_major++;
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT), "major");
	mapping = forge(library.path);
	mapping.inode = 0;
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT),
		  "anonymous");
	mapping = forge(library.path);
	mapping.path = "[heap]";
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT), "no path");
	process_close(&process);
}

Test(live_images, exe_link_needs_no_device_match)
{
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct image *image = NULL;
	char path[PATH_MAX];

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	cr_assert(ne(ptr, realpath("/proc/self/exe", path), NULL));
	process = own_process_open();
	live_images_init(&images, &process);
	struct mapping mapping = forge(path);

	mapping.dev_minor++;
	cr_expect(zero(int, image_source_open(&images.source, &mapping, &image)));
	image_close(image);
	mapping.inode++;
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT), "inode");
	mapping = forge(path);
	mapping.dev_minor++;
	mapping.path = "/proc/self/exe";
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT),
		  "another path");
	process_close(&process);
}

Test(live_images, fifo_at_a_mapped_path_is_not_opened, .timeout = 60)
{
	char folder[] = "/tmp/pysample-test-XXXXXX";
	char path[64];
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct image *image = NULL;

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	(void)snprintf(path, sizeof(path), "%s/fifo", folder);
	cr_assert(zero(int, mkfifo(path, 0600)));
	struct mapping mapping = forge(path);

	process = own_process_open();
	live_images_init(&images, &process);
	cr_expect(eq(int, image_source_open(&images.source, &mapping, &image), -ENOENT));
	process_close(&process);
	(void)unlink(path);
	(void)rmdir(folder);
}

Test(live_images, replaced_file_is_refused)
{
	struct library library = find_library();
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct image *image = NULL;
	struct maps maps;
	char path[] = "/tmp/pysample-test-XXXXXX";
	char moved[sizeof(path) + 1];
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	cleanup_close int fd = mkstemp(path);

	cr_assert(eq(sz, (size_t)write(fd, bytes, size), size));
	void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	cr_assert(ne(ptr, mapped, MAP_FAILED));
	/* Put another valid ELF file, this program, in the library's place. */
	(void)snprintf(moved, sizeof(moved), "%s2", path);
	size_t exe_size;
	cleanup_free char *exe = read_file("/proc/self/exe", &exe_size);
	cleanup_close int moved_fd = open(moved, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	cr_assert(eq(sz, (size_t)write(moved_fd, exe, exe_size), exe_size));
	cr_assert(zero(int, rename(moved, path)));
	process = own_process_open();
	live_images_init(&images, &process);
	cr_assert(zero(int, maps_read(&process, &maps)));
	const struct mapping *mapping = maps_find(&maps, (uintptr_t)mapped);

	cr_assert(ne(ptr, (void *)mapping, NULL));
	cr_expect(mapping->deleted);
	int err = image_source_open(&images.source, mapping, &image);

	/* map_files leads to the right file, if it may be used. */
	cr_expect(err == 0 || err == -ENOENT, "%d", err);
	if (!err) {
		char *copy = malloc(size);

		cr_expect(zero(int, image_read(image, 0, copy, size)));
		cr_expect(zero(int, memcmp(copy, bytes, size)));
		free(copy);
	}
	image_close(image);
	maps_done(&maps);
	process_close(&process);
	(void)unlink(path);
}

/* The vDSO has no file; its memory is laid out like one. */
Test(live_images, reads_the_vdso)
{
	const unsigned long addr = getauxval(AT_SYSINFO_EHDR);
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct image *image = NULL;
	struct maps maps;
	uint64_t vaddr, nr_bytes;
	char bytes[64];

	if (!addr)
		cr_skip("this kernel gives programs no vDSO");
	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	live_images_init(&images, &process);
	cr_assert(zero(int, image_source_open(&images.source, maps_find(&maps, addr), &image)));
	cr_expect(zero(int, image_read(image, 0, bytes, sizeof(bytes))));
	cr_expect(zero(int, memcmp(bytes, (const void *)addr, sizeof(bytes))));
	cr_expect(zero(int, image_section(image, ".dynsym", &vaddr, &nr_bytes)));
	image_close(image);
	maps_done(&maps);
	process_close(&process);
}

/* A child whose root is a folder, as in a container. It ends with this test. */
static pid_t start_in_root(const char *folder)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || chroot(folder))
			_exit(EXIT_FAILURE);
		(void)raise(SIGSTOP);
		_exit(EXIT_SUCCESS);
	}
	return pid;
}

Test(live_images, finds_debug_files_in_the_root_of_the_process)
{
	char folder[] = "/tmp/pysample-test-XXXXXX";
	struct image *image = open_path("/proc/self/exe");
	uint8_t build_id[BUILD_ID_MAX_BYTES], found_id[BUILD_ID_MAX_BYTES];
	const size_t id_bytes = image_build_id(image, build_id);
	struct process process = PROCESS_CLOSED;
	struct live_images images;
	struct maps maps;
	size_t size;
	int status;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);

	image_close(image);
	if (geteuid() != 0)
		cr_skip("only root may give a process another root");
	cr_assert(lt(sz, 1, id_bytes), "this compiler gives no build IDs");
	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	/* The contents do not matter here, so this program serves as the debug file. */
	char *path = debug_folder_add(folder, build_id, id_bytes, bytes, size);
	pid_t pid = start_in_root(folder);

	cr_assert(eq(int, waitpid(pid, &status, WUNTRACED), pid));
	cr_assert(ne(int, WIFSTOPPED(status), 0));
	cr_assert(zero(int, process_open(pid, &process, NULL)));
	cr_assert(zero(int, maps_read(&process, &maps)));
	live_images_init(&images, &process);
	const struct mapping *mapping = maps_find(&maps, (uintptr_t)start_in_root);

	cr_assert(zero(int, image_source_open_debug(&images.source, mapping, &image)));
	cr_expect(eq(sz, image_build_id(image, found_id), id_bytes));
	cr_expect(zero(int, memcmp(found_id, build_id, id_bytes)));
	image_close(image);
	debug_folder_remove(path, folder);
	maps_done(&maps);
	process_close(&process);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
}
