/* SPDX-License-Identifier: MIT */
#include "procmem/process.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/permission.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

/* A child process; run() ends with saying that it is ready. Killed at the end of the test. */
struct child {
	pid_t pid;
	int ready_fd;  /* receives one pid_t */
	pid_t sent_id; /* the id that the child sent */
};

static struct child child_start(void (*run)(int ready_fd))
{
	int fds[2];
	struct child child;

	cr_assert(zero(int, pipe(fds)));
	child.pid = fork();
	if (child.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(fds[1]);
		_exit(0);
	}
	(void)close(fds[1]);
	child.ready_fd = fds[0];
	cr_assert(eq(int, read(child.ready_fd, &child.sent_id, sizeof(pid_t)), (int)sizeof(pid_t)));
	return child;
}

static void send_id(int fd, pid_t value)
{
	if (write(fd, &value, sizeof(value)) != (ssize_t)sizeof(value))
		_exit(1);
}

static void child_end(struct child *child)
{
	(void)kill(child->pid, SIGKILL);
	(void)waitpid(child->pid, NULL, 0);
	(void)close(child->ready_fd);
}

/* Wait until the child's main thread is in this state. */
static void await_state(pid_t pid, char state)
{
	for (;;) {
		char path[64];
		char text[512] = "";

		(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		FILE *file = fopen(path, "re");

		cr_assert(ne(ptr, file, NULL));
		(void)!fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
		if (strrchr(text, ')')[2] == state)
			return;
		(void)usleep(1000);
	}
}

static void run_pause(int ready_fd)
{
	send_id(ready_fd, 0);
	for (;;)
		(void)pause();
}

static void *send_thread_id(void *ready_fd)
{
	(void)prctl(PR_SET_NAME, "a) b (c");
	send_id(*(int *)ready_fd, (pid_t)syscall(SYS_gettid));
	for (;;)
		(void)pause();
	return NULL;
}

static void run_thread(int ready_fd)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, send_thread_id, &ready_fd);
	for (;;)
		(void)pause();
}

/* The main thread ends and becomes a zombie; the other one continues. */
static void run_headless(int ready_fd)
{
	static int fd;
	pthread_t thread;

	fd = ready_fd;
	(void)pthread_create(&thread, NULL, send_thread_id, &fd);
	(void)syscall(SYS_exit, 0);
}

/* A name that breaks a parser which searches for the first ')' or for a blank. */
static void run_named(int ready_fd)
{
	(void)prctl(PR_SET_NAME, "x) Z 1 (\n1 2");
	run_pause(ready_fd);
}

static void run_exit(int ready_fd)
{
	send_id(ready_fd, 0);
}

Test(process, opens_and_notices_the_exit)
{
	struct child child = child_start(run_pause);
	struct process process = PROCESS_CLOSED;
	char buffer[64];
	pid_t tid = 0;

	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_expect(eq(int, process.pid, child.pid));
	cr_expect(eq(int, process.uid, geteuid()));
	cr_expect(not(process_memory_is_gone(&process)));
	cr_expect(process_has_thread(&process, child.pid));
	cr_expect(not(process_has_thread(&process, getpid())), "another process's thread");
	cr_expect(zero(int, process_live_thread(&process, &tid)));
	cr_expect(eq(int, tid, child.pid));

	(void)kill(child.pid, SIGKILL);
	await_state(child.pid, 'Z');
	cr_expect(process_memory_is_gone(&process), "a zombie");
	cr_expect(process_has_thread(&process, child.pid), "a zombie keeps its id");
	cr_expect(eq(int, process_live_thread(&process, &tid), -ESRCH), "a zombie");

	child_end(&child);
	cr_expect(process_memory_is_gone(&process), "reaped");
	cr_expect(not(process_has_thread(&process, child.pid)), "reaped");
	cr_expect(eq(int, process_live_thread(&process, &tid), -ESRCH), "reaped");
	cr_expect(eq(int, process_read_file(&process, "stat", buffer, sizeof(buffer)), -ESRCH));
	process_close(&process);
	process_close(&process);
}

/*
 * Report that it is ready and stop. Then write a byte and become another program, which writes
 * four more.
 */
static void run_exec(int ready_fd)
{
	char byte = 0;

	send_id(ready_fd, 0);
	(void)raise(SIGSTOP);
	(void)dup2(ready_fd, STDOUT_FILENO);
	(void)!write(ready_fd, &byte, 1);
	(void)execl("/bin/sh", "sh", "-c", "printf 1234; kill -STOP $$", NULL);
	_exit(1);
}

/* Let the child call exec, and wait until the new program runs. */
static void finish_exec(const struct child *child)
{
	char sent_id[5];

	(void)kill(child->pid, SIGCONT);
	cr_assert(eq(int, read(child->ready_fd, sent_id, 1), 1));
	cr_assert(eq(int, read(child->ready_fd, sent_id, 4), 4));
}

/* Start a child with an id that another process had. Returns false if that is not possible here. */
static bool child_start_as(pid_t pid, struct child *ret_child)
{
	for (int i = 0; i < 1000; i++) {
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");

		if (!last)
			return false;
		(void)fprintf(last, "%d", pid - 1);
		if (fclose(last))
			return false;
		*ret_child = child_start(run_pause);
		if (ret_child->pid == pid)
			return true;
		child_end(ret_child);
	}
	return false;
}

Test(process, is_not_the_next_one_with_its_id)
{
	struct child child = child_start(run_pause);
	struct process process = PROCESS_CLOSED, again = PROCESS_CLOSED, other = PROCESS_CLOSED;

	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_assert(zero(int, process_open(child.pid, &again, NULL)));
	cr_assert(zero(int, process_open(getpid(), &other, NULL)));
	cr_expect(process_equals(&process, &again));
	cr_expect(not(process_equals(&process, &other)));
	cr_expect(not(process_equals(&process, &PROCESS_CLOSED)));
	child_end(&child);
	cr_expect(process_equals(&process, &again), "both have ended");
	process_close(&other);
	if (child_start_as(process.pid, &child)) {
		cr_assert(zero(int, process_open(child.pid, &other, NULL)));
		cr_expect(not(process_equals(&process, &other)), "its id was used again");
		child_end(&child);
	}
	process_close(&process);
	process_close(&again);
	process_close(&other);
}

Test(process, notices_an_exec)
{
	struct child child = child_start(run_exec);
	struct process process = PROCESS_CLOSED;
	struct process after = PROCESS_CLOSED;
	struct process no_memory = PROCESS_CLOSED;
	struct live_memory live;

	await_state(child.pid, 'T');
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	live_memory_init(&live, &process);
	cr_expect(not(process_memory_is_gone(&process)));
	cr_expect(zero(int, remote_memory_check(&live.memory)));
	finish_exec(&child);
	cr_expect(process_memory_is_gone(&process));
	cr_expect(process_has_thread(&process, child.pid));
	cr_expect(eq(int, remote_memory_check(&live.memory), -ESRCH));

	cr_assert(zero(int, process_open(child.pid, &after, NULL)));
	cr_expect(not(process_memory_is_gone(&after)), "the new program has other memory");
	no_memory.proc_fd = process.proc_fd;
	cr_expect(not(process_memory_is_gone(&no_memory)), "the memory is unknown");
	process_close(&process);
	process_close(&after);
	child_end(&child);
}

Test(process, follows_an_exec)
{
	struct child child = child_start(run_exec);
	struct process process = PROCESS_CLOSED;

	await_state(child.pid, 'T');
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	finish_exec(&child);
	cr_assert(process_memory_is_gone(&process));
	cr_expect(zero(int, process_reopen_memory(&process)));
	cr_expect(not(process_memory_is_gone(&process)), "the new program's memory");
	(void)kill(child.pid, SIGKILL);
	await_state(child.pid, 'Z');
	cr_expect(process_memory_is_gone(&process));
	cr_expect(eq(int, process_reopen_memory(&process), -ESRCH), "a zombie");
	child_end(&child);
	cr_expect(eq(int, process_reopen_memory(&process), -ESRCH), "reaped");
	process_close(&process);
}

Test(process, age_grows_and_is_unlimited_after_the_end)
{
	struct child child = child_start(run_pause);
	struct process ours = PROCESS_CLOSED;
	struct process theirs = PROCESS_CLOSED;

	ours = own_process_open();
	cr_assert(zero(int, process_open(child.pid, &theirs, NULL)));
	cr_expect(le(u64, process_age_ns(&theirs), process_age_ns(&ours)));
	child_end(&child);
	cr_expect(eq(u64, process_age_ns(&theirs), UINT64_MAX), "an ended process");
	cr_expect(ne(u64, process_age_ns(&ours), UINT64_MAX));
	process_close(&ours);
	process_close(&theirs);
}

Test(process, refuses_ids_of_no_process)
{
	struct child child = child_start(run_thread);
	struct process process = PROCESS_CLOSED;
	struct message message = {""};
	char expected[32];

	cr_expect(eq(int, process_open(child.sent_id, &process, &message), -ESRCH));
	(void)snprintf(expected, sizeof(expected), "thread of process %d:", child.pid);
	cr_expect(ne(ptr, strstr(message.text, expected), NULL), "%s", message.text);
	child_end(&child);

	static const pid_t none[] = {0, -1, 0x7fffffff};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		message.text[0] = '\0';
		cr_expect(eq(int, process_open(none[i], &process, &message), -ESRCH));
		cr_expect(ne(chr, message.text[0], '\0'));
	}
	cr_expect(eq(int, process_open(child.pid, &process, NULL), -ESRCH), "reaped");
	cr_expect(eq(int, process.proc_fd, -1), "unchanged on failure");
	process_close(&process);
	process_close(NULL);
}

Test(process, lives_on_without_its_main_thread)
{
	struct child child = child_start(run_headless);
	struct process process = PROCESS_CLOSED;
	struct live_memory live;
	struct maps maps = {0};
	uint64_t value;
	pid_t tid = 0;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	await_state(child.pid, 'Z');
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_expect(not(process_memory_is_gone(&process)));
	cr_expect(zero(int, process_live_thread(&process, &tid)));
	cr_expect(eq(int, tid, child.sent_id));

	cr_expect(zero(int, maps_read(&process, &maps)));
	cr_expect(ne(ptr, (void *)maps_find(&maps, (uintptr_t)child_start), NULL));
	maps_done(&maps);

	live_memory_init(&live, &process);
	cr_expect(eq(int, live.tid, child.pid));
	cr_expect(zero(int, remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value)));
	cr_expect(eq(int, live.tid, child.sent_id));
	cr_expect(eq(u64, live.nr_reads, 2));
	cr_expect(zero(int, remote_memory_check(&live.memory)));

	/* An id that is no thread of the process is never used. */
	live.tid = getpid();
	cr_expect(zero(int, remote_memory_check(&live.memory)));
	cr_expect(eq(int, live.tid, child.sent_id));
	process_close(&process);
	child_end(&child);
}

Test(process, ends_with_its_last_thread)
{
	struct child child = child_start(run_headless);
	struct process process = PROCESS_CLOSED;
	struct live_memory live;
	uint64_t value = 5;

	await_state(child.pid, 'Z');
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	live_memory_init(&live, &process);
	cr_expect(zero(int, remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value)));
	child_end(&child);
	cr_expect(eq(int, remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value),
		     -ESRCH));
	cr_expect(eq(int, remote_memory_check(&live.memory), -ESRCH));
	process_close(&process);
}

Test(process, zombie_has_no_maps)
{
	struct child child = child_start(run_exit);
	struct process process = PROCESS_CLOSED;
	struct maps maps;
	char line[64];

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	await_state(child.pid, 'Z');
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_expect(eq(int, maps_read(&process, &maps), -ESRCH));
	process_command_line(&process, line, sizeof(line));
	cr_expect(eq(chr, line[0], '['), "%s", line);
	process_close(&process);
	child_end(&child);
}

Test(process, name_cannot_forge_the_state)
{
	struct child child = child_start(run_named);
	struct process process = PROCESS_CLOSED;
	struct process_thread *threads = NULL;
	size_t nr_threads = 0;
	pid_t tid = 0;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_expect(zero(int, process_live_thread(&process, &tid)),
		  "the name is not read as the state");
	cr_expect(eq(int, tid, child.pid));
	cr_assert(zero(int, process_threads(&process, &threads, &nr_threads)));
	cr_expect(eq(sz, nr_threads, 1));
	cr_expect(eq(str, threads[0].name, (char *)"x) Z 1 (\n1 2"));
	cr_expect(eq(int, threads[0].tid, child.pid));
	free(threads);
	process_close(&process);
	child_end(&child);
}

Test(process, lists_threads)
{
	struct child child = child_start(run_thread);
	struct process process = PROCESS_CLOSED;
	struct process_thread *threads = NULL;
	size_t nr_threads = 0;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	cr_assert(zero(int, process_threads(&process, &threads, &nr_threads)));
	cr_assert(eq(sz, nr_threads, 2));
	cr_expect(eq(int, threads[0].tid, child.pid));
	cr_expect(eq(int, threads[1].tid, child.sent_id));
	cr_expect(eq(int, threads[1].ns_tid, child.sent_id));
	cr_expect(eq(str, threads[1].name, (char *)"a) b (c"));
	free(threads);
	process_close(&process);
	child_end(&child);
}

/*
 * Make a process that is the first one of a new PID namespace and send its id, or 0 if that is not
 * allowed.
 */
static void run_in_namespace(int ready_fd)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) && unshare(CLONE_NEWPID)) {
		send_id(ready_fd, 0);
		return;
	}
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	send_id(ready_fd, pid);
	(void)waitpid(pid, NULL, 0);
}

Test(process, reads_ids_in_another_pid_namespace)
{
	struct child child = child_start(run_in_namespace);
	struct process process = PROCESS_CLOSED;
	struct process_thread *threads = NULL;
	size_t nr_threads = 0;
	bool other = false;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	if (child.sent_id == 0)
		cr_skip("not tested here: PID namespaces (unshare is not allowed)");
	cr_assert(zero(int, process_open(child.sent_id, &process, NULL)));
	cr_expect(zero(int, process_other_namespace(&process, "pid", &other)));
	cr_expect(other);
	cr_expect(zero(int, process_other_namespace(&process, "uts", &other)));
	cr_expect(not(other));
	cr_expect(eq(int, process_other_namespace(&process, "none", &other), -EPERM));
	cr_assert(zero(int, process_threads(&process, &threads, &nr_threads)));
	cr_assert(eq(sz, nr_threads, 1));
	cr_expect(eq(int, threads[0].tid, child.sent_id));
	cr_expect(eq(int, threads[0].ns_tid, 1));
	free(threads);
	process_close(&process);
	(void)kill(child.sent_id, SIGKILL);
	child_end(&child);
}

Test(process, reads_files_of_proc)
{
	struct process process = PROCESS_CLOSED;
	char buffer[8];
	char *text = NULL;
	size_t size = 0;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	process = own_process_open();
	memset(buffer, 'x', sizeof(buffer));
	cr_expect(eq(int, process_read_file(&process, "status", buffer, sizeof(buffer)), 7));
	cr_expect(eq(str, buffer, (char *)"Name:\tt"));
	cr_expect(eq(int, process_read_file(&process, "nothing", buffer, 8), -ENOENT));
	cr_expect(eq(int, process_read_file(&process, "task/1/comm", buffer, 8), -ESRCH));
	cr_expect(eq(int, process_read_whole_file(&process, "status", 10, &text, &size), -E2BIG));
	cr_expect(zero(int, process_read_whole_file(&process, "status", 1 << 20, &text, &size)));
	cr_expect(eq(sz, strlen(text), size));
	cr_expect(ne(ptr, strstr(text, "\nTgid:"), NULL));
	free(text);
	process_close(&process);
}

static void run_command(int ready_fd)
{
	(void)dup2(ready_fd, STDOUT_FILENO);
	(void)execl("/bin/sh", "sh", "-c", "printf '\\0\\0\\0\\0'; kill -STOP $$", "one two",
		    "\033[31m\n", "", NULL);
	_exit(1);
}

Test(process, command_line_is_printable_and_cut)
{
	struct child child = child_start(run_command);
	struct process process = PROCESS_CLOSED;
	char line[256];
	char *tail;

	cr_assert(zero(int, process_open(child.pid, &process, NULL)));
	process_command_line(&process, line, sizeof(line));
	cr_expect(zero(int, strncmp(line, "sh -c printf", 12)), "%s", line);
	tail = strstr(line, "$$");
	cr_assert(ne(ptr, tail, NULL));
	cr_expect(eq(str, tail, (char *)"$$ one two ?[31m?"));
	process_command_line(&process, line, 6);
	cr_expect(eq(str, line, (char *)"sh -c"));
	process_command_line(&process, line, 1);
	cr_expect(eq(str, line, (char *)""));
	child_end(&child);
	process_command_line(&process, line, sizeof(line));
	cr_expect(eq(str, line, (char *)""));
	process_close(&process);
}

#define NOBODY 65534

/* Explain from a child without privileges why pid cannot be read. */
static void explain_as_nobody(pid_t pid, struct message *ret_message)
{
	int fds[2];

	cr_assert(zero(int, pipe(fds)));
	pid_t reader = fork();

	if (reader == 0) {
		struct process process = PROCESS_CLOSED;
		struct message message = {""};
		struct live_memory live;
		uint64_t value;

		if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ||
		    process_open(pid, &process, &message))
			_exit(1);
		live_memory_init(&live, &process);
		if (remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value) != -EPERM)
			_exit(2);
		permission_explain(&process, &message);
		_exit(write(fds[1], &message, sizeof(message)) != (ssize_t)sizeof(message));
	}
	int status = -1;

	cr_expect(eq(int, waitpid(reader, &status, 0), reader));
	cr_assert(zero(int, status));
	cr_assert(eq(int, read(fds[0], ret_message, sizeof(*ret_message)),
		     (int)sizeof(*ret_message)));
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* Changing credentials clears the parent-death signal, so set it again. */
static void become_nobody(gid_t gid, bool dumpable)
{
	if (setresgid(gid, gid, gid) || setresuid(NOBODY, NOBODY, NOBODY) ||
	    prctl(PR_SET_DUMPABLE, dumpable) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(1);
}

static void run_undumpable(int ready_fd)
{
	become_nobody(NOBODY, false);
	run_pause(ready_fd);
}

static void run_in_other_group(int ready_fd)
{
	become_nobody(1, true);
	run_pause(ready_fd);
}

/* Lose the effective capabilities and keep the permitted ones. */
static void run_with_capabilities(int ready_fd)
{
	if (prctl(PR_SET_KEEPCAPS, 1))
		_exit(1);
	become_nobody(NOBODY, true);
	run_pause(ready_fd);
}

Test(process, explains_refused_access)
{
	static const struct {
		char name[32];
		void (*run)(int ready_fd);
		char expected[32];
	} cases[] = {
		{"another user", run_pause, "another user (uid 0, ours is"},
		{"undumpable", run_undumpable, "undumpable"},
		{"another group", run_in_other_group, "runs under another group"},
		{"capabilities", run_with_capabilities, "more capabilities than we have"},
	};

	if (geteuid() != 0)
		cr_skip("not tested here: refusals (needs root to become another user)");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct child child = child_start(cases[i].run);
		struct message message;

		explain_as_nobody(child.pid, &message);
		cr_expect(ne(ptr, strstr(message.text, cases[i].expected), NULL), "%s: %s",
			  cases[i].name, message.text);
		cr_expect(ne(ptr, strstr(message.text, "sudo pysample"), NULL), "%s: %s",
			  cases[i].name, message.text);
		child_end(&child);
	}
}

static void run_undumpable_later(int ready_fd)
{
	become_nobody(NOBODY, true);
	send_id(ready_fd, 0);
	(void)raise(SIGSTOP);
	(void)prctl(PR_SET_DUMPABLE, 0);
	run_pause(ready_fd);
}

/*
 * Read a child before and after it becomes undumpable. Returns 0, or the number of the failed
 * step.
 */
static int read_as_nobody(const struct child *child)
{
	struct process process = PROCESS_CLOSED;
	struct live_memory live;
	uint64_t value;
	pid_t sent_id;

	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ||
	    process_open(child->pid, &process, NULL))
		return 1;
	live_memory_init(&live, &process);
	if (remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value))
		return 2;
	if (kill(child->pid, SIGCONT) ||
	    read(child->ready_fd, &sent_id, sizeof(sent_id)) != (ssize_t)sizeof(sent_id))
		return 3;
	if (remote_memory_read_u64(&live.memory, (uintptr_t)child_start, &value) != -EPERM)
		return 4;
	return live.through_file ? 5 : 0;
}

Test(process, reads_stop_when_access_is_revoked)
{
	struct child child;
	int status = -1;
	pid_t reader;

	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	if (geteuid() != 0)
		cr_skip("not tested here: refusals (needs root to become another user)");
	child = child_start(run_undumpable_later);
	await_state(child.pid, 'T');
	reader = fork();
	if (reader == 0)
		_exit(read_as_nobody(&child));
	cr_expect(eq(int, waitpid(reader, &status, 0), reader));
	if (WEXITSTATUS(status) != 2) /* Yama may refuse the first read, too */
		cr_expect(zero(int, status));
	child_end(&child);
}
