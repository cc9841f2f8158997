/* SPDX-License-Identifier: MIT */
/* For a JIT of LLVM: two functions, one of which is always called by the other. */
__attribute__((noinline)) unsigned long hotloop(unsigned long nr)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < nr; i++)
		sum ^= i * i;
	return sum;
}

int main(void)
{
	while (hotloop(1000000) != 1)
		;
	return 0;
}
