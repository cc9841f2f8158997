/* SPDX-License-Identifier: MIT */
#include "procmem/sched/thread_wait.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <unistd.h>

#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

/* Lines as Linux 6.1 writes them, and malformed ones. */
Test(thread_wait, parses_places)
{
	static const struct {
		const char *text;
		int err;
		uint64_t sp_addr, pc_addr;
	} cases[] = {
		{"0 0x3 0x7ffdca085c30 0x12c 0x7f79dd480b60 0x0 0x0 0x7ffdca085bf8 "
		 "0x7f79dd5692ad\n",
		 0, 0x7ffdca085bf8, 0x7f79dd5692ad},
		{"-1 0x7ffdca085bf8 0x7f79dd5692ad\n", 0, 0x7ffdca085bf8, 0x7f79dd5692ad},
		{"1 0xffffffffffffffff 0x0\n", 0, UINT64_MAX, 0},
		{"-1 0x0 0x0\n", -ESRCH, 0, 0},
		{"running\n", -EAGAIN, 0, 0},
		{"", -EBADMSG, 0, 0},
		{"running", -EBADMSG, 0, 0},
		{"0x1 0x2\n", -EBADMSG, 0, 0},
		{"1 0x1 0x2", -EBADMSG, 0, 0}, /* truncated */
		{"1 0x1 0x10000000000000000\n", -EBADMSG, 0, 0},
		{"1 0x 0x1\n", -EBADMSG, 0, 0},
		{"1 1 2\n", -EBADMSG, 0, 0},
		{" \n", -EBADMSG, 0, 0},
		{"  \n", -EBADMSG, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wait_place place = {0};

		cr_expect(eq(int, wait_place_parse(cases[i].text, &place), cases[i].err), "'%s'",
			  cases[i].text);
		cr_expect(eq(u64, place.sp_addr, cases[i].sp_addr), "'%s'", cases[i].text);
		cr_expect(eq(u64, place.pc_addr, cases[i].pc_addr), "'%s'", cases[i].text);
	}
}

Test(thread_wait, finds_where_a_thread_waits, .timeout = 60)
{
	struct wait_place place, again, kept;
	struct pipe_waiter waiter;
	struct process process;
	int fd;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	process = own_process_open();
	pipe_waiter_begin(&waiter);
	place = pipe_waiter_place(&waiter, &process);
	/* The thread is inside read(), called by its own function. */
	cr_expect(lt(u64, place.sp_addr, (uint64_t)waiter.on_stack));
	cr_expect(lt(u64, (uint64_t)waiter.on_stack - place.sp_addr, 4096));
	cr_expect(lt(u64, 0, place.pc_addr));
	cr_expect(zero(int, wait_place_check(&process, waiter.tid, &place)));
	fd = wait_place_open(&process, waiter.tid);
	cr_assert(le(int, 0, fd));
	cr_assert(zero(int, wait_place_read_fd(fd, place.nr_runs, &kept)));
	cr_expect(wait_place_is_same(&kept, &place));
	cr_expect(eq(int, wait_place_open(&process, getppid()), -ESRCH));
	/* The thread has continued and waits at the same place. */
	again = pipe_waiter_continue(&waiter, &process);
	cr_expect(eq(u64, again.sp_addr, place.sp_addr));
	cr_expect(eq(u64, again.pc_addr, place.pc_addr));
	cr_expect(eq(u64, again.call_hash, place.call_hash));
	if (place.nr_runs) {
		cr_expect(lt(u64, place.nr_runs, again.nr_runs));
		cr_expect(not(wait_place_is_same(&again, &place)));
		cr_expect(eq(int, wait_place_check(&process, waiter.tid, &place), -EAGAIN));
	}
	cr_assert(zero(int, wait_place_read_fd(fd, again.nr_runs, &kept)));
	cr_expect(wait_place_is_same(&kept, &again));
	pipe_waiter_end(&waiter);
	cr_expect(not(zero(int, wait_place_check(&process, waiter.tid, &again))));
	cr_expect(eq(int, wait_place_read_fd(fd, 0, &kept), -ESRCH));
	(void)close(fd);
	process_close(&process);
}

Test(thread_wait, parses_calls)
{
	static const struct {
		const char *text;
		int err;
		int64_t number;
		uint64_t first, last;
	} cases[] = {
		{"0 0x3 0x7ffd 0x12c 0x7f79 0x0 0x5 0x7ffdca085bf8 0x7f79dd5692ad\n", 0, 0, 3, 5},
		{"202 0xffffffffffffffff 0x1 0x2 0x3 0x4 0x0 0x1 0x2\n", 0, 202, UINT64_MAX, 0},
		{"-1 0x7ffdca085bf8 0x7f79dd5692ad\n", 0, -1, 0, 0},
		{"running\n", -EAGAIN, 0, 0, 0},
		{"", -EBADMSG, 0, 0, 0},
		{"0", -EBADMSG, 0, 0, 0},
		{"0 ", -EBADMSG, 0, 0, 0},
		{"0 0x3 0x4 0x5 0x6 0x7\n", -EBADMSG, 0, 0, 0},
		{"0 0x3 0x4 0x5 0x6 0x7 9 0x1 0x2\n", -EBADMSG, 0, 0, 0},
		{"0 0x3 0x4 0x5 0x6 0x7 0x10000000000000000 0x1 0x2\n", -EBADMSG, 0, 0, 0},
		{"x 0x3 0x4 0x5 0x6 0x7 0x8 0x1 0x2\n", -EBADMSG, 0, 0, 0},
		{"99999999999999999999 0x3 0x4 0x5 0x6 0x7 0x8 0x1 0x2\n", -EBADMSG, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct thread_call call = {0};

		cr_expect(eq(int, thread_call_parse(cases[i].text, &call), cases[i].err), "'%s'",
			  cases[i].text);
		cr_expect(eq(i64, call.number, cases[i].number), "'%s'", cases[i].text);
		cr_expect(eq(u64, call.arguments[0], cases[i].first), "'%s'", cases[i].text);
		cr_expect(eq(u64, call.arguments[5], cases[i].last), "'%s'", cases[i].text);
	}
}

Test(thread_wait, tells_pages_from_freezers)
{
	static const struct {
		struct thread_wait wait;
		bool is_for_page, is_frozen;
	} cases[] = {
		{{'D', "folio_wait_bit_common"}, true, false},
		{{'D', "wait_on_page_bit_killable"}, true, false},
		{{'S', "handle_userfault"}, true, false},
		{{'S', "do_freezer_trap"}, false, true},
		{{'D', "__refrigerator"}, false, true},
		{{'S', "futex_do_wait"}, false, false},
		{{'D', ""}, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_expect(eq(int, thread_wait_is_for_page(&cases[i].wait), cases[i].is_for_page),
			  "%s", cases[i].wait.wchan);
		cr_expect(eq(int, thread_wait_is_frozen(&cases[i].wait), cases[i].is_frozen), "%s",
			  cases[i].wait.wchan);
	}
}
