/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/unwind_table.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/hash.h"

/* The value of functions[].first_row until the function is compiled. */
#define NOT_COMPILED UINT32_MAX

/* Slots of the hash table that finds recent equal rules, one rule each. */
#define RECENT_RULES 256

/* Addresses are offsets from lowest_vaddr. */
struct function {
	uint32_t nr_bytes;
	uint32_t cfi_offset; /* of its FDE in the section */
	uint32_t first_row;
	uint32_t nr_rows;
};

struct row {
	uint32_t start;
	uint32_t rule_index;
};

struct unwind_table {
	struct cfi_section section;
	uint64_t lowest_vaddr;
	uint32_t *starts; /* of functions, rising; a separate array, as it is searched */
	struct function *functions;
	uint32_t nr_functions;
	struct row *rows; /* rising within each function */
	uint32_t nr_rows;
	uint32_t max_rows;
	struct unwind_rule **rules; /* each allocated alone: addresses never change */
	uint32_t nr_rules;
	uint32_t max_rules;
	uint32_t recent_rules[RECENT_RULES]; /* indexes of rules; 0 also in empty slots */
};

/* Functions. */

/* A function before sorting. */
struct entry {
	uint32_t start;
	struct function function;
};

struct entries {
	struct entry *entries;
	uint32_t nr;
	uint32_t max;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *entry_a = a;
	const struct entry *entry_b = b;

	return (entry_a->start > entry_b->start) - (entry_a->start < entry_b->start);
}

/* Most linkers sort the section already. */
static void sort_entries(const struct entries *list)
{
	for (uint32_t i = 1; i < list->nr; i++) {
		if (list->entries[i].start < list->entries[i - 1].start) {
			qsort(list->entries, list->nr, sizeof(*list->entries), compare_entries);
			return;
		}
	}
}

/* Returns 0 or -ENOMEM. A function that ends too far from lowest_vaddr is left out. */
static int add_entry(struct entries *list, uint64_t lowest_vaddr,
		     const struct cfi_function *function)
{
	const uint64_t start = function->start_vaddr - lowest_vaddr;
	struct entry *entries;

	if (start > UINT32_MAX || function->nr_bytes > UINT32_MAX - start)
		return 0;
	entries = array_reserve(list->entries, list->nr + 1, &list->max, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	list->entries = entries;
	entries[list->nr++] = (struct entry){
		.start = (uint32_t)start,
		.function = {.nr_bytes = (uint32_t)function->nr_bytes,
			     .cfi_offset = (uint32_t)function->offset,
			     .first_row = NOT_COMPILED},
	};
	return 0;
}

/* Store the functions in the table. Returns 0 or -ENOMEM. */
static int set_functions(struct unwind_table *table, const struct entries *list)
{
	const size_t nr = list->nr ? list->nr : 1;

	table->starts = calloc(nr, sizeof(*table->starts));
	table->functions = calloc(nr, sizeof(*table->functions));
	if (!table->starts || !table->functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->nr; i++) {
		table->starts[i] = list->entries[i].start;
		table->functions[i] = list->entries[i].function;
	}
	table->nr_functions = list->nr;
	return 0;
}

static int list_functions(struct unwind_table *table)
{
	struct cfi_function function = {.common = {.code_alignment = 0}};
	struct entries list = {.entries = NULL};
	uint64_t offset = 0;
	int err = 0;

	while (!err && list.nr < UNWIND_TABLE_MAX_FUNCTIONS &&
	       !cfi_next_function(&table->section, offset, &function.common, &function, &offset))
		err = add_entry(&list, table->lowest_vaddr, &function);
	if (!err) {
		sort_entries(&list);
		err = set_functions(table, &list);
	}
	free(list.entries);
	return err;
}

int unwind_table_create(const struct cfi_section *section, uint64_t lowest_vaddr,
			struct unwind_table **ret_table)
{
	struct unwind_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table) {
		free((void *)section->bytes);
		return -ENOMEM;
	}
	table->section = *section;
	table->lowest_vaddr = lowest_vaddr;
	err = list_functions(table);
	if (err)
		unwind_table_destroy(table);
	else
		*ret_table = table;
	return err;
}

void unwind_table_destroy(struct unwind_table *table)
{
	if (!table)
		return;
	free((void *)table->section.bytes);
	free(table->starts);
	free(table->functions);
	free(table->rows);
	for (uint32_t i = 0; i < table->nr_rules; i++)
		free(table->rules[i]);
	free(table->rules);
	free(table);
}

const struct cfi_section *unwind_table_section(const struct unwind_table *table)
{
	return &table->section;
}

/* Compilation. */

/* Turns the rows of a function into rows of the table. */
struct compiler {
	struct cfi_row_sink sink;
	struct unwind_table *table;
	const struct cfi_common *common;
};

static struct unwind_rule rule_of_row(const struct cfi_row *row, const struct cfi_common *common)
{
	struct unwind_rule rule = {
		.cfa_offset = row->cfa_offset,
		.cfa_register = row->cfa_register,
		.cfa_is_expression = row->cfa_is_expression,
		.is_signal_frame = common->is_signal_frame,
		.is_return_signed = row->is_return_signed,
		.return_register = (uint8_t)common->return_register,
	};

	for (unsigned int i = 0; i < NR_REGISTERS; i++) {
		struct unwind_save *save = &rule.saves[rule.nr_saves];

		if (row->rules[i].kind == CFI_SAME)
			continue;
		save->number = (uint8_t)i;
		save->kind = row->rules[i].kind;
		save->value = row->rules[i].value;
		rule.nr_saves++;
	}
	return rule;
}

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	uint64_t hash = (uint32_t)rule->cfa_offset + ((uint64_t)rule->cfa_register << 32);

	for (unsigned int i = 0; i < rule->nr_saves; i++)
		hash = (hash + rule->saves[i].number + (uint32_t)rule->saves[i].value) *
		       HASH_GOLDEN_RATIO;
	return (uint32_t)(hash >> 32);
}

static bool is_same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	if (a->cfa_offset != b->cfa_offset || a->cfa_register != b->cfa_register ||
	    a->cfa_is_expression != b->cfa_is_expression ||
	    a->is_signal_frame != b->is_signal_frame ||
	    a->is_return_signed != b->is_return_signed ||
	    a->return_register != b->return_register || a->nr_saves != b->nr_saves)
		return false;
	for (unsigned int i = 0; i < a->nr_saves; i++)
		if (a->saves[i].number != b->saves[i].number ||
		    a->saves[i].kind != b->saves[i].kind || a->saves[i].value != b->saves[i].value)
			return false;
	return true;
}

/* Store the rule, usually once for all rows that use it. Returns 0, -E2BIG, -ENOMEM. */
static int store_rule(struct unwind_table *table, const struct unwind_rule *rule,
		      uint32_t *ret_index)
{
	uint32_t *recent = &table->recent_rules[hash_rule(rule) % RECENT_RULES];
	struct unwind_rule **rules;
	struct unwind_rule *stored;

	if (*recent < table->nr_rules && is_same_rule(table->rules[*recent], rule)) {
		*ret_index = *recent;
		return 0;
	}
	if (table->nr_rules == UNWIND_TABLE_MAX_RULES)
		return -E2BIG;
	rules = array_reserve(table->rules, table->nr_rules + 1, &table->max_rules,
			      sizeof(struct unwind_rule *));
	if (!rules)
		return -ENOMEM;
	table->rules = rules;
	stored = array_copy(rule, 1, sizeof(*rule));
	if (!stored)
		return -ENOMEM;
	*ret_index = *recent = table->nr_rules++;
	rules[*ret_index] = stored;
	return 0;
}

static int add_row(struct cfi_row_sink *sink, const struct cfi_row *row)
{
	const struct compiler *compiler = (struct compiler *)sink;
	struct unwind_table *table = compiler->table;
	const struct unwind_rule rule = rule_of_row(row, compiler->common);
	uint32_t rule_index;
	struct row *rows;
	int err;

	err = store_rule(table, &rule, &rule_index);
	if (err)
		return err;
	if (table->nr_rows == UNWIND_TABLE_MAX_ROWS)
		return -E2BIG;
	rows = array_reserve(table->rows, table->nr_rows + 1, &table->max_rows, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	table->rows = rows;
	rows[table->nr_rows++] =
		(struct row){.start = (uint32_t)(row->start_vaddr - table->lowest_vaddr),
			     .rule_index = rule_index};
	return 0;
}

/*
 * Compile a function. A damaged program leaves no rows: those before the damage may be wrong,
 * too.
 */
static void compile(struct unwind_table *table, struct function *function)
{
	const struct cfi_common none = {.code_alignment = 0};
	const uint32_t first_row = table->nr_rows;
	struct cfi_function entry;
	struct compiler compiler = {.sink.row = add_row, .table = table, .common = &entry.common};
	uint64_t next_offset;

	if (cfi_next_function(&table->section, function->cfi_offset, &none, &entry, &next_offset) ||
	    entry.common.return_register >= NR_REGISTERS ||
	    cfi_program_run(&table->section, &entry, &compiler.sink))
		table->nr_rows = first_row;
	function->first_row = first_row;
	function->nr_rows = table->nr_rows - first_row;
}

/* Look-up. */

/* The function that contains the offset, or NULL. */
static struct function *find_function(struct unwind_table *table, uint32_t offset)
{
	const uint32_t *starts = table->starts;
	uint32_t first = 0;
	uint32_t nr = table->nr_functions;

	if (!nr || starts[0] > offset)
		return NULL;
	/* The function sought is in [first, first + nr). */
	while (nr > 1) {
		const uint32_t half = nr / 2;

		first = starts[first + half] <= offset ? first + half : first;
		nr -= half;
	}
	return offset - starts[first] < table->functions[first].nr_bytes ? &table->functions[first]
									 : NULL;
}

/* The row that contains the offset, or NULL. The first row starts with the function. */
static const struct row *find_row(const struct unwind_table *table, const struct function *function,
				  uint32_t offset)
{
	const struct row *row;
	uint32_t nr = function->nr_rows;

	if (!nr)
		return NULL;
	row = &table->rows[function->first_row];
	while (nr > 1) {
		const uint32_t half = nr / 2;

		row = row[half].start <= offset ? row + half : row;
		nr -= half;
	}
	return row;
}

const struct unwind_rule *unwind_table_find(struct unwind_table *table, uint64_t vaddr)
{
	const uint64_t offset = vaddr - table->lowest_vaddr;
	struct function *function;
	const struct row *row;

	if (offset > UINT32_MAX)
		return NULL;
	function = find_function(table, (uint32_t)offset);
	if (!function)
		return NULL;
	if (function->first_row == NOT_COMPILED)
		compile(table, function);
	row = find_row(table, function, (uint32_t)offset);
	return row ? table->rules[row->rule_index] : NULL;
}

int unwind_table_function(struct unwind_table *table, uint64_t vaddr, uint64_t *ret_vaddr,
			  uint64_t *ret_nr_bytes)
{
	const uint64_t offset = vaddr - table->lowest_vaddr;
	const struct function *function =
		offset > UINT32_MAX ? NULL : find_function(table, (uint32_t)offset);

	if (!function)
		return -ENOENT;
	*ret_vaddr = table->lowest_vaddr + table->starts[function - table->functions];
	*ret_nr_bytes = function->nr_bytes;
	return 0;
}
