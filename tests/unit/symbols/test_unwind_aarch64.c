/* SPDX-License-Identifier: MIT */
/* The unwinder on the stack of this program itself, against libgcc's. */
#include "symbols/unwind/unwind.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#if defined(__aarch64__)

#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "procmem/live.h"
#include "tests/support/own_process.h"

enum { MAX_MODULES = 64, MAX_FRAMES = 64 };

/* Signed return addresses, if the processor has them; else the instructions do nothing. */
#define SIGNS __attribute__((noinline, target("branch-protection=pac-ret+leaf")))
#define PLAIN __attribute__((noinline, target("branch-protection=none")))

/* The two ways to see one stack. */
static struct seen {
	void *theirs[MAX_FRAMES];
	int nr_theirs;
	struct unwind_frame ours[MAX_FRAMES];
	struct unwound unwound;
	int err;
	uint64_t signed_word; /* a return address as it is on the stack */
} seen;

static jmp_buf after_fault;

/* The loader's list: the kernel's may be an emulator's. */
static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct maps *maps = context;
	struct mapping *mapping = &maps->mappings[maps->nr_mappings];
	remote_addr end = 0;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz > end)
			end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	if (maps->nr_mappings == MAX_MODULES || !end)
		return 0;
	*mapping = (struct mapping){.start = info->dlpi_addr,
				    .end = info->dlpi_addr + end,
				    .readable = true,
				    .executable = true,
				    .inode = maps->nr_mappings + 1,
				    .path = "/m"};
	maps->nr_mappings++;
	return 0;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *mapping_a = a, *mapping_b = b;

	return mapping_a->start < mapping_b->start ? -1 : 1;
}

static void unwind_ours(const struct registers *innermost)
{
	struct mapping mappings[MAX_MODULES];
	struct maps maps = {.mappings = mappings};
	struct module_files *files = module_files_create();
	struct unwind_modules *modules = NULL;
	struct stack_window window;
	struct live_memory live;
	struct process process;
	struct module_map map;

	(void)dl_iterate_phdr(add_module, &maps);
	qsort(mappings, maps.nr_mappings, sizeof(mappings[0]), compare_mappings);
	process = own_process_open();
	live_memory_init(&live, &process);
	cr_assert(zero(int, module_map_init(&map, &maps)));
	cr_assert(zero(int, unwind_modules_create(&live.memory, &map, NULL, files, &modules)));
	cr_assert(zero(int, stack_window_init(&window, &live.memory)));
	seen.unwound = (struct unwound){.frames = seen.ours, .max_frames = MAX_FRAMES};
	seen.err = unwind_stack(modules, &window, innermost, &seen.unwound);
	stack_window_done(&window);
	unwind_modules_destroy(modules);
	module_files_destroy(files);
	module_map_done(&map);
	process_close(&process);
}

/* Unwind in both ways from here on. */
static PLAIN void look(void)
{
	struct registers registers = {.is_interrupted = false};
	ucontext_t here;

	seen.nr_theirs = backtrace(seen.theirs, MAX_FRAMES);
	cr_assert(zero(int, getcontext(&here)));
	for (unsigned int i = REGISTER_X19; i <= REGISTER_LR; i++)
		registers_set(&registers, i, here.uc_mcontext.regs[i]);
	registers_set(&registers, REGISTER_SP, here.uc_mcontext.sp);
	registers_set(&registers, REGISTER_PC, here.uc_mcontext.pc);
	unwind_ours(&registers);
}

/* The frames from the caller of look() on; in look() they differ. */
static void expect_same(void)
{
	cr_assert(zero(int, seen.err));
	cr_assert(lt(int, 4, seen.nr_theirs));
	cr_assert(lt(sz, 4, seen.unwound.nr_frames));
	cr_expect(eq(sz, seen.unwound.nr_frames, (size_t)seen.nr_theirs));
	for (size_t i = 1; i < seen.unwound.nr_frames && i < (size_t)seen.nr_theirs; i++)
		cr_expect(eq(u64, seen.ours[i].pc, (uintptr_t)seen.theirs[i]), "%zu", i);
}

static PLAIN int plain_frames(int depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (depth)
		return plain_frames(depth - 1) + room[0];
	look();
	return room[0];
}

Test(unwind_aarch64, frames_are_those_that_libgcc_finds)
{
	(void)plain_frames(5);
	expect_same();
}

/* A frame pointer, and a stack whose size is known only to the code. */
static PLAIN int variable_frames(size_t nr_bytes)
{
	volatile char *room = __builtin_alloca(nr_bytes);

	room[0] = 1;
	if (nr_bytes > 100)
		return variable_frames(nr_bytes - 100) + room[0];
	return plain_frames(1) + room[0];
}

Test(unwind_aarch64, frames_of_variable_size)
{
	(void)variable_frames(300);
	expect_same();
}

static SIGNS int signed_frames(int depth)
{
	volatile int kept = depth;

	/* A frame record: the caller's frame pointer, and the return address. */
	seen.signed_word = ((uint64_t *)__builtin_frame_address(0))[1];
	if (depth)
		return signed_frames(depth - 1) + kept;
	return plain_frames(1) + kept;
}

Test(unwind_aarch64, signed_return_addresses)
{
	(void)signed_frames(3);
	expect_same();
	if (getauxval(AT_HWCAP) & HWCAP_PACA)
		cr_expect(ne(u64, seen.signed_word >> 48, 0), "the address is signed");
}

static PLAIN void handle(int number)
{
	(void)number;
	look();
	siglongjmp(after_fault, 1);
}

static SIGNS int fault_here(volatile int *place)
{
	return *place + 1;
}

/* Leave a fault in a leaf without a frame by a handler that unwinds. */
static void fault(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};

	cr_assert(zero(int, sigaction(SIGSEGV, &action, NULL)));
	if (!sigsetjmp(after_fault, 1))
		(void)fault_here(NULL);
}

Test(unwind_aarch64, signal_frames)
{
	size_t signal = 0;

	fault();
	expect_same();
	while (signal < seen.unwound.nr_frames && !seen.ours[signal].is_signal_frame)
		signal++;
	cr_assert(lt(sz, signal + 2, seen.unwound.nr_frames));
	/* The interrupted pc is exact, and the handler's stack ends at the interrupted one's. */
	cr_expect(eq(u64, seen.ours[signal + 1].lookup_addr, seen.ours[signal + 1].pc));
	cr_expect(ge(u64, seen.ours[signal + 1].pc, (uintptr_t)fault_here));
	cr_expect(lt(u64, seen.ours[signal + 1].pc, (uintptr_t)fault_here + 64));
	cr_expect(eq(u64, seen.ours[signal].cfa, seen.ours[signal + 1].sp));
}

/* A call through NULL has pushed nothing; x30 leads back. libgcc's unwinder stops there. */
static PLAIN void call(void (*volatile function)(void))
{
	function();
	__asm__ volatile("");
}

static void call_nothing(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};

	cr_assert(zero(int, sigaction(SIGSEGV, &action, NULL)));
	if (!sigsetjmp(after_fault, 1))
		call(NULL);
}

Test(unwind_aarch64, calls_to_an_unmapped_address)
{
	size_t i = 0;

	call_nothing();
	cr_assert(zero(int, seen.err));
	while (i < seen.unwound.nr_frames && seen.ours[i].pc)
		i++;
	cr_assert(lt(sz, i + 2, seen.unwound.nr_frames));
	cr_expect(ge(u64, seen.ours[i + 1].pc, (uintptr_t)call));
	cr_expect(lt(u64, seen.ours[i + 1].pc, (uintptr_t)call + 64));
}

/* CPython's trampoline (perf_trampoline.h) with a signed return address, in memory of its own. */
__asm__(".pushsection .rodata\n"
	".balign 4\n"
	"trampoline: hint 25\n"
	"stp x29, x30, [sp, -16]!\n"
	"mov x29, sp\n"
	"blr x3\n"
	"ldp x29, x30, [sp], 16\n"
	"hint 29\n"
	"ret\n"
	"trampoline_end: .word 0\n"
	".popsection\n");
extern const uint8_t trampoline[] __attribute__((visibility("hidden")));
extern const uint8_t trampoline_end[] __attribute__((visibility("hidden")));

static PLAIN void call_through(void (*code)(int, int, int, void (*)(void)))
{
	code(0, 0, 0, look);
	__asm__ volatile("");
}

Test(unwind_aarch64, trampolines_of_cpython)
{
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(int, int, int, void (*)(void));

	cr_assert(ne(ptr, code, MAP_FAILED));
	memcpy(code, trampoline, (size_t)(trampoline_end - trampoline));
	cr_assert(zero(int, mprotect(code, 4096, PROT_READ | PROT_EXEC)));
	__builtin___clear_cache((char *)code, (char *)code + 4096);
	memcpy(&function, &code, sizeof(function));
	call_through(function);
	cr_assert(zero(int, seen.err));
	cr_expect(eq(u64, seen.ours[1].pc, (uintptr_t)code + 16));
	cr_expect(ge(u64, seen.ours[2].pc, (uintptr_t)call_through));
	cr_expect(lt(u64, seen.ours[2].pc, (uintptr_t)call_through + 64));
	cr_expect(lt(sz, 4, seen.unwound.nr_frames));
}

#endif
