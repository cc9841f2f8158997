/* SPDX-License-Identifier: MIT */
#include "output/text/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/*
 * Number 0 stands for all signals. The first match counts. SI_TKILL and codes above 9 are
 * specific to Linux.
 */
static const struct {
	int number;
	int code;
	const char *name;
	const char *text;
} codes[] = {
	{0, SI_USER, "SI_USER", "kill"},
	/* On x86-64 a general protection fault, for example at a non-canonical address. */
	{SIGSEGV, SI_KERNEL, "SI_KERNEL",
	 "a fault without an address, such as a non-canonical one"},
	{0, SI_KERNEL, "SI_KERNEL", "by the kernel"},
	{0, SI_QUEUE, "SI_QUEUE", "sigqueue"},
	{0, SI_TIMER, "SI_TIMER", "a timer"},
	{0, SI_MESGQ, "SI_MESGQ", "a message queue"},
	{0, SI_ASYNCIO, "SI_ASYNCIO", "asynchronous I/O"},
	{0, SI_SIGIO, "SI_SIGIO", "a descriptor became ready"},
	{0, SI_TKILL, "SI_TKILL", "tgkill"},
	{SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR", "the address is not mapped"},
	{SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR", "the access is not permitted"},
	{SIGSEGV, SEGV_BNDERR, "SEGV_BNDERR", "the address is out of bounds"},
	{SIGSEGV, SEGV_PKUERR, "SEGV_PKUERR", "forbidden by a memory protection key"},
	{SIGBUS, BUS_ADRALN, "BUS_ADRALN", "the address is not aligned"},
	{SIGBUS, BUS_ADRERR, "BUS_ADRERR", "beyond the end of a mapped file"},
	{SIGBUS, BUS_OBJERR, "BUS_OBJERR", "a hardware error"},
	{SIGBUS, BUS_MCEERR_AR, "BUS_MCEERR_AR", "a hardware memory error was hit"},
	{SIGBUS, BUS_MCEERR_AO, "BUS_MCEERR_AO", "a hardware memory error was detected"},
	{SIGFPE, FPE_INTDIV, "FPE_INTDIV", "an integer division by zero"},
	{SIGFPE, FPE_INTOVF, "FPE_INTOVF", "an integer overflow"},
	{SIGFPE, FPE_FLTDIV, "FPE_FLTDIV", "a floating-point division by zero"},
	{SIGFPE, FPE_FLTOVF, "FPE_FLTOVF", "a floating-point overflow"},
	{SIGFPE, FPE_FLTUND, "FPE_FLTUND", "a floating-point underflow"},
	{SIGFPE, FPE_FLTRES, "FPE_FLTRES", "an inexact floating-point result"},
	{SIGFPE, FPE_FLTINV, "FPE_FLTINV", "an invalid floating-point operation"},
	{SIGFPE, FPE_FLTSUB, "FPE_FLTSUB", "a subscript out of range"},
	{SIGILL, ILL_ILLOPC, "ILL_ILLOPC", "an illegal instruction"},
	{SIGILL, ILL_ILLOPN, "ILL_ILLOPN", "an illegal operand"},
	{SIGILL, ILL_ILLADR, "ILL_ILLADR", "an illegal addressing mode"},
	{SIGILL, ILL_ILLTRP, "ILL_ILLTRP", "an illegal trap"},
	{SIGILL, ILL_PRVOPC, "ILL_PRVOPC", "a privileged instruction"},
	{SIGILL, ILL_PRVREG, "ILL_PRVREG", "a privileged register"},
	{SIGILL, ILL_COPROC, "ILL_COPROC", "a coprocessor error"},
	{SIGILL, ILL_BADSTK, "ILL_BADSTK", "an internal stack error"},
	{SIGTRAP, TRAP_BRKPT, "TRAP_BRKPT", "a breakpoint"},
	{SIGTRAP, TRAP_TRACE, "TRAP_TRACE", "a traced step"},
	{SIGSYS, 1, "SYS_SECCOMP", "a system call forbidden by seccomp"},
};

enum { NR_CODES = sizeof(codes) / sizeof(*codes) };

void signal_name(int number, char ret_name[SIGNAL_NAME_MAX_BYTES])
{
	const char *name = number < SIGRTMIN ? sigabbrev_np(number) : NULL;

	if (name)
		(void)snprintf(ret_name, SIGNAL_NAME_MAX_BYTES, "SIG%s", name);
	else if (number >= SIGRTMIN && number <= SIGRTMAX)
		(void)snprintf(ret_name, SIGNAL_NAME_MAX_BYTES, "SIGRTMIN+%d", number - SIGRTMIN);
	else
		(void)snprintf(ret_name, SIGNAL_NAME_MAX_BYTES, "SIG%d", number);
}

/* Returns the index of a code in the table; NR_CODES if there is none. */
static size_t find_code(int number, int code)
{
	size_t i = 0;

	while (i < NR_CODES &&
	       !((codes[i].number == number || codes[i].number == 0) && codes[i].code == code))
		i++;
	return i;
}

const char *signal_code_name(int number, int code)
{
	size_t i = find_code(number, code);

	return i < NR_CODES ? codes[i].name : NULL;
}

const char *signal_code_text(int number, int code)
{
	size_t i = find_code(number, code);

	return i < NR_CODES ? codes[i].text : NULL;
}
