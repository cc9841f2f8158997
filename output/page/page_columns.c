/* SPDX-License-Identifier: MIT */
#include "output/page/page_columns.h"

#include <assert.h>

#define NS_PER_US 1000u

/* The flags of samples in recordings, and one that only pages have. */
enum { FLAGS_MASK = 0x7f | SAMPLE_IN_JIT | SAMPLE_APPROXIMATE | SAMPLE_IDLE, FLAG_HAS_CPU = 0x80 };

/* Returns the greatest common divisor. Every number divides 0. */
static uint64_t common_divisor(uint64_t one, uint64_t other)
{
	while (other) {
		uint64_t rest = one % other;

		one = other;
		other = rest;
	}
	return one;
}

/* Count a number in the column and return it in the column's unit. */
static uint64_t scale_number(struct page_numbers *numbers, uint64_t value)
{
	numbers->nr++;
	if (numbers->divisor != 1)
		numbers->divisor = common_divisor(value, numbers->divisor);
	return numbers->unit > 1 ? value / numbers->unit : value;
}

/* DWARF 5, 7.6 "Variable Length Data". */
static void put_leb128(struct page_numbers *numbers, uint64_t value)
{
	for (;; value >>= 7) {
		int byte = (int)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);

		numbers->bytes++;
		if (numbers->out)
			(void)putc_unlocked(byte, numbers->out);
		if (value <= 0x7f)
			break;
	}
}

static void put_unsigned(struct page_numbers *numbers, uint64_t value)
{
	put_leb128(numbers, scale_number(numbers, value));
}

/* Zigzag: small numbers are short, whatever their sign: 0, -1, 1, -2, … */
static void put_signed(struct page_numbers *numbers, int64_t value)
{
	uint64_t size = scale_number(numbers, value < 0 ? -(uint64_t)value : (uint64_t)value);

	put_leb128(numbers, value < 0 ? size * 2 - 1 : size * 2);
}

/* Rounds nanoseconds to microseconds so that the sums agree. */
struct rounding {
	uint64_t sum_ns, sum_us;
};

static uint64_t round_us(struct rounding *rounding, uint64_t ns)
{
	uint64_t before_us = rounding->sum_us;

	rounding->sum_ns += ns;
	rounding->sum_us = (rounding->sum_ns + NS_PER_US / 2) / NS_PER_US;
	return rounding->sum_us - before_us;
}

static void write_function_names(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_functions; i++)
		put_unsigned(numbers, index->functions[i].name);
}

static void write_function_paths(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_functions; i++)
		put_unsigned(numbers, index->functions[i].path);
}

static void write_function_lines(const struct page_index *index, struct page_numbers *numbers)
{
	int64_t previous = 0;

	for (uint32_t i = 0; i < index->nr_functions; i++) {
		put_signed(numbers, index->functions[i].first_line - previous);
		previous = index->functions[i].first_line;
	}
}

static void write_function_kinds(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_functions; i++)
		put_unsigned(numbers, index->functions[i].kind);
}

static void write_function_origins(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_functions; i++)
		put_unsigned(numbers, index->functions[i].origin);
}

/* Returns a frame by its place in the index. */
static const struct profile_frame *frame_at(const struct page_index *index, uint32_t place)
{
	uint32_t nr;

	return &profile_frames(index->profile, &nr)[index->frames[place]];
}

static void write_frame_functions(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t root;

	(void)profile_functions(index->profile, &root); /* roots come after the functions */
	for (uint32_t i = 0; i < index->nr_frames; i++) {
		uint32_t function = frame_at(index, i)->function;

		put_unsigned(numbers, function == PROFILE_NONE ? root++ : function);
	}
}

static void write_frame_lines(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_frames; i++) {
		const struct profile_frame *frame = frame_at(index, i);
		int64_t first_line = 0;

		if (frame->function != PROFILE_NONE)
			first_line = index->functions[frame->function].first_line;
		put_signed(numbers, frame->line - first_line);
	}
}

static void write_node_parents(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(index->profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		put_unsigned(numbers, nodes[i].parent == PROFILE_NONE ? 0 : i - nodes[i].parent);
}

/* Frames are numbered by their first node, so a new frame is always the next one: 0. */
static void write_node_frames(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t nr;
	uint32_t next = 0;
	const struct profile_node *nodes = profile_nodes(index->profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t frame = index->frame_of[nodes[i].frame];

		put_unsigned(numbers, next - frame);
		next += frame == next;
	}
}

static void write_base_nodes(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t nr;
	uint32_t previous = 0;
	const struct profile_weight *base = profile_base(index->profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		if (!base[i].samples)
			continue;
		put_unsigned(numbers, i - previous);
		previous = i;
	}
}

static void write_base_weights(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t nr;
	struct rounding rounding = {0};
	const struct profile_weight *base = profile_base(index->profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		if (base[i].samples)
			put_unsigned(numbers, round_us(&rounding, base[i].ns));
}

static void write_base_samples(const struct page_index *index, struct page_numbers *numbers)
{
	uint32_t nr;
	const struct profile_weight *base = profile_base(index->profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		if (base[i].samples)
			put_unsigned(numbers, base[i].samples);
}

static void write_tick_times(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_ticks; i++)
		put_unsigned(numbers, i ? index->ticks_us[i] - index->ticks_us[i - 1] : 0);
}

static void write_thread_counts(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_groups; i++)
		put_unsigned(numbers, index->first_sample[i + 1] - index->first_sample[i]);
}

/* Walks through the samples, thread by thread. */
struct sample_walk {
	const struct page_index *index;
	const struct profile_sample *samples;
	uint32_t next, group;
	bool is_first; /* in its thread */
	struct rounding weights, cpus;
	uint64_t weight_us, cpu_us;
};

static struct sample_walk sample_walk_begin(const struct page_index *index)
{
	uint32_t nr;

	return (struct sample_walk){.index = index,
				    .samples = profile_samples(index->profile, &nr)};
}

/* Returns the next sample; NULL at the end. */
static const struct profile_sample *sample_walk_next(struct sample_walk *walk)
{
	const struct page_index *index = walk->index;
	const struct profile_sample *sample;

	if (walk->next == index->first_sample[index->nr_groups])
		return NULL;
	walk->is_first = walk->next == index->first_sample[walk->group];
	while (walk->next >= index->first_sample[walk->group + 1]) {
		walk->group++;
		walk->is_first = true;
	}
	sample = &walk->samples[index->samples[walk->next++]];
	walk->weight_us = round_us(&walk->weights, sample->weight_ns);
	walk->cpu_us = round_us(&walk->cpus, sample->cpu_ns);
	return sample;
}

static void write_sample_ticks(const struct page_index *index, struct page_numbers *numbers)
{
	struct sample_walk walk = sample_walk_begin(index);
	const struct profile_sample *sample;
	uint32_t previous = 0;

	while ((sample = sample_walk_next(&walk))) {
		uint32_t hint = walk.is_first ? 0 : previous;
		uint32_t tick = page_index_tick(index, page_index_time_us(index, sample), hint);

		put_unsigned(numbers, walk.is_first ? tick : tick - previous);
		previous = tick;
	}
}

static void write_stack_nodes(const struct page_index *index, struct page_numbers *numbers)
{
	for (uint32_t i = 0; i < index->nr_stacks; i++)
		put_unsigned(numbers, index->stacks[i]);
}

static void write_sample_stacks(const struct page_index *index, struct page_numbers *numbers)
{
	struct sample_walk walk = sample_walk_begin(index);
	const struct profile_sample *sample;

	while ((sample = sample_walk_next(&walk)))
		put_unsigned(numbers, page_index_stack(index, sample));
}

static void write_sample_weights(const struct page_index *index, struct page_numbers *numbers)
{
	struct sample_walk walk = sample_walk_begin(index);
	const struct profile_sample *sample;
	uint64_t previous_us = 0;

	while ((sample = sample_walk_next(&walk))) {
		uint64_t time_us = page_index_time_us(index, sample);
		uint64_t expected_us = walk.is_first ? 0 : time_us - previous_us;

		put_signed(numbers, (int64_t)(walk.weight_us - expected_us));
		previous_us = time_us;
	}
}

/* Returns the current sample's flags. A sample with CPU time always has a flag that says so. */
static uint32_t flags_of(const struct sample_walk *walk, const struct profile_sample *sample)
{
	const uint32_t flags = sample->flags & FLAGS_MASK;

	return walk->cpu_us && !(flags & SAMPLE_ON_CPU) ? flags | FLAG_HAS_CPU : flags;
}

static void write_sample_flags(const struct page_index *index, struct page_numbers *numbers)
{
	struct sample_walk walk = sample_walk_begin(index);
	const struct profile_sample *sample;

	while ((sample = sample_walk_next(&walk)))
		put_unsigned(numbers, flags_of(&walk, sample));
}

/* A thread that runs and holds the GIL uses nearly all of the time, which is the expected value. */
static void write_sample_cpu(const struct page_index *index, struct page_numbers *numbers)
{
	const uint32_t running = SAMPLE_HOLDS_GIL | SAMPLE_ON_CPU;
	struct sample_walk walk = sample_walk_begin(index);
	const struct profile_sample *sample;

	while ((sample = sample_walk_next(&walk))) {
		uint32_t flags = flags_of(&walk, sample);
		uint64_t expected_us = (flags & running) == running ? walk.weight_us : 0;

		if (flags & (SAMPLE_ON_CPU | FLAG_HAS_CPU))
			put_signed(numbers, (int64_t)(walk.cpu_us - expected_us));
	}
}

static const struct page_column always[] = {
	{"function.name", false, write_function_names},
	{"function.path", false, write_function_paths},
	{"function.line", true, write_function_lines},
	{"function.kind", false, write_function_kinds},
	{"function.origin", false, write_function_origins},
	{"frame.function", false, write_frame_functions},
	{"frame.line", true, write_frame_lines},
	{"node.parent", false, write_node_parents},
	{"node.frame", false, write_node_frames},
	{"stack.node", false, write_stack_nodes},
	{"tick.time", false, write_tick_times},
	{"thread.count", false, write_thread_counts},
	{"sample.tick", false, write_sample_ticks},
	{"sample.stack", false, write_sample_stacks},
	{"sample.weight", true, write_sample_weights},
	{"sample.flags", false, write_sample_flags},
};

static const struct page_column of_base[] = {
	{"base.node", false, write_base_nodes},
	{"base.weight", false, write_base_weights},
	{"base.samples", false, write_base_samples},
};

static const struct page_column of_cpu = {"sample.cpu", true, write_sample_cpu};

void page_columns_choose(const struct page_index *index, bool has_base,
			 const struct page_column *ret_columns[PAGE_MAX_COLUMNS], uint32_t *ret_nr)
{
	const struct profile_account *account =
		&profile_sums(index->profile, PROFILE_SHOWN)->account;
	uint32_t nr = 0;

	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		ret_columns[nr++] = &always[i];
	for (size_t i = 0; has_base && i < sizeof(of_base) / sizeof(*of_base); i++)
		ret_columns[nr++] = &of_base[i];
	if (account->nr_cpu_measured && profile_mode(index->profile) != PROFILE_CPU)
		ret_columns[nr++] = &of_cpu;
	assert(nr <= PAGE_MAX_COLUMNS);
	*ret_nr = nr;
}

struct page_numbers page_column_measure(const struct page_column *column,
					const struct page_index *index)
{
	struct page_numbers numbers = {.unit = 1};

	column->write(index, &numbers);
	if (numbers.divisor > 1) {
		numbers = (struct page_numbers){.unit = numbers.divisor};
		column->write(index, &numbers);
	}
	return numbers;
}

void page_column_write(const struct page_column *column, const struct page_index *index,
		       uint64_t unit, FILE *out)
{
	struct page_numbers numbers = {.out = out, .unit = unit};

	column->write(index, &numbers);
}
