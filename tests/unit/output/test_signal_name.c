/* SPDX-License-Identifier: MIT */
#include "output/text/signal_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <string.h>

Test(signal_name, names_signals)
{
	static const struct {
		int number;
		const char *name;
	} cases[] = {
		{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"},
		{SIGSYS, "SIGSYS"},   {0, "SIG0"},
		{-1, "SIG-1"},	      {99, "SIG99"},
		{32, "SIG32"},	      {1 << 30, "SIG1073741824"},
	};
	char name[SIGNAL_NAME_MAX_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		signal_name(cases[i].number, name);
		cr_expect(eq(str, name, (char *)cases[i].name));
	}
	signal_name(SIGRTMIN + 3, name);
	cr_expect(eq(str, name, (char *)"SIGRTMIN+3"));
}

/* Some codes have a meaning for each signal, others the same for all. */
Test(signal_name, names_codes)
{
	cr_expect(eq(str, (char *)signal_code_name(SIGSEGV, SEGV_MAPERR), (char *)"SEGV_MAPERR"));
	cr_expect(eq(str, (char *)signal_code_name(SIGBUS, BUS_ADRALN), (char *)"BUS_ADRALN"));
	cr_expect(eq(str, (char *)signal_code_name(SIGABRT, SI_TKILL), (char *)"SI_TKILL"));
	cr_expect(eq(str, (char *)signal_code_name(SIGSEGV, SI_KERNEL), (char *)"SI_KERNEL"));
	cr_expect(ne(str, (char *)signal_code_text(SIGSEGV, SI_KERNEL),
		     (char *)signal_code_text(SIGTRAP, SI_KERNEL)));
	cr_expect(eq(str, (char *)signal_code_text(SIGFPE, FPE_INTDIV),
		     (char *)"an integer division by zero"));
	cr_expect(eq(ptr, (void *)signal_code_name(SIGSEGV, 99), NULL));
	cr_expect(eq(ptr, (void *)signal_code_text(SIGABRT, 1), NULL));
}
