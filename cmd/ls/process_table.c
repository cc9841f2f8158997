/* SPDX-License-Identifier: MIT */
#include "cmd/ls/process_table.h"

#include <string.h>

#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/text_width.h"

/* The cells of a row but the name, which is last and has what room is left. */
enum cell { CELL_NUMBER, CELL_PID, CELL_VERSION, CELL_THREADS, CELL_CPU, CELL_CONTAINER, NR_CELLS };

/* Room for any cell: of text, the container has the longest. */
enum { CELL_MAX_BYTES = CONTAINER_ID_MAX_BYTES };

/* A name that is cut to less says nothing. */
enum { NAME_MIN_COLUMNS = 8 };

struct row {
	char cells[NR_CELLS][CELL_MAX_BYTES];
};

static void format_row(const struct python_process *process, uint32_t number, struct row *row)
{
	char(*cells)[CELL_MAX_BYTES] = row->cells;
	const char *container = process->container[0]	       ? process->container
				: process->other_pid_namespace ? "(pid ns)"
							       : "-";

	(void)snprintf(cells[CELL_NUMBER], CELL_MAX_BYTES, "%u", number);
	(void)snprintf(cells[CELL_PID], CELL_MAX_BYTES, "%d", process->pid);
	(void)snprintf(cells[CELL_VERSION], CELL_MAX_BYTES, "%s%s",
		       process->version[0] ? process->version : "?",
		       process->free_threaded ? "t" : "");
	(void)snprintf(cells[CELL_THREADS], CELL_MAX_BYTES, "%u", process->nr_threads);
	if (process->cpu_percent >= 0)
		(void)snprintf(cells[CELL_CPU], CELL_MAX_BYTES, "%.0f %%", process->cpu_percent);
	else
		(void)snprintf(cells[CELL_CPU], CELL_MAX_BYTES, "?");
	(void)snprintf(cells[CELL_CONTAINER], CELL_MAX_BYTES, "%s", container);
}

static const struct row head = {{"#", "PID", "PYTHON", "THREADS", "CPU", "CONTAINER"}};

/* Widen the columns to a row. Cells are ASCII, except for names of containers. */
static void widen(size_t widths[NR_CELLS], const struct row *row)
{
	for (int i = 0; i < NR_CELLS; i++)
		if (text_width(row->cells[i]) > widths[i])
			widths[i] = text_width(row->cells[i]);
}

/* Append the cells. Returns the columns used. */
static size_t append_cells(const struct row *row, const size_t widths[NR_CELLS], bool is_numbered,
			   struct text *text)
{
	size_t used = 0;

	for (int i = is_numbered ? CELL_NUMBER : CELL_PID; i < NR_CELLS; i++) {
		const size_t room = widths[i] - text_width(row->cells[i]);
		const bool is_left = i == CELL_VERSION || i == CELL_CONTAINER;

		text_pad(text, is_left ? 0 : room);
		text_puts(text, row->cells[i]);
		text_pad(text, (is_left ? room : 0) + 2);
		used += widths[i] + 2;
	}
	return used;
}

static void append_row(const struct row *row, const char *name, const size_t widths[NR_CELLS],
		       size_t columns, bool is_numbered, struct text *text)
{
	const size_t used = append_cells(row, widths, is_numbered, text);
	struct text escaped = {0};

	label_append_escaped(&escaped, name, strlen(name), LABEL_DISPLAY);
	if (!columns)
		text_puts(text, text_string(&escaped));
	else
		text_append_head(text, text_string(&escaped),
				 columns > used + NAME_MIN_COLUMNS ? columns - used
								   : NAME_MIN_COLUMNS);
	text_puts(text, "\n");
	text_done(&escaped);
}

void process_table_format(const struct python_processes *processes, size_t columns,
			  bool is_numbered, struct text *text)
{
	size_t widths[NR_CELLS] = {0};
	struct row row;

	widen(widths, &head);
	for (uint32_t i = 0; i < processes->nr; i++) {
		format_row(&processes->rows[i], i + 1, &row);
		widen(widths, &row);
	}
	append_row(&head, "NAME", widths, columns, is_numbered, text);
	for (uint32_t i = 0; i < processes->nr; i++) {
		format_row(&processes->rows[i], i + 1, &row);
		append_row(&row, processes->rows[i].name, widths, columns, is_numbered, text);
	}
}

static void write_process(struct json *json, const struct python_process *process)
{
	static const char *const problems[] = {
		[PYTHON_READABLE] = NULL,
		[PYTHON_FORBIDDEN] = "permission",
		[PYTHON_UNKNOWN] = "unknown interpreter",
	};

	json_object_begin(json);
	json_key(json, "pid");
	json_i64(json, process->pid);
	json_member_u64(json, "uid", process->uid);
	json_member_string(json, "python", process->version[0] ? process->version : NULL);
	json_key(json, "free_threaded");
	if (process->version[0])
		json_bool(json, process->free_threaded);
	else
		json_null(json);
	json_member_string(json, "problem", problems[process->access]);
	json_member_string(json, "command", process->name);
	json_member_u64(json, "threads", process->nr_threads);
	json_key(json, "cpu_percent");
	if (process->cpu_percent >= 0)
		json_fixed(json, (uint64_t)(process->cpu_percent * 10 + 0.5), 1);
	else
		json_null(json);
	json_member_string(json, "container", process->container[0] ? process->container : NULL);
	json_member_bool(json, "other_pid_namespace", process->other_pid_namespace);
	json_object_end(json);
}

int process_table_write_json(const struct python_processes *processes, FILE *out)
{
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	json_key(&json, "processes");
	json_array_begin(&json);
	for (uint32_t i = 0; i < processes->nr; i++)
		write_process(&json, &processes->rows[i]);
	json_array_end(&json);
	json_member_u64(&json, "nr_hidden", processes->nr_hidden);
	json_object_end(&json);
	return json_finish(&json);
}
