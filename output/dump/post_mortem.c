/* SPDX-License-Identifier: MIT */
#include "output/dump/post_mortem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/signal_name.h"

/*
 * Returns the name of the code; NULL if unknown. For a fault with an address code 0, which is that
 * of kill(2), counts as unknown.
 */
static const char *code_name_of(const struct post_mortem *post_mortem)
{
	return post_mortem->has_addr && !post_mortem->code
		       ? NULL
		       : signal_code_name(post_mortem->signal, post_mortem->code);
}

void post_mortem_append_death(struct text *text, const struct post_mortem *post_mortem)
{
	const char *code_name = code_name_of(post_mortem);
	char name[SIGNAL_NAME_MAX_BYTES];

	if (!post_mortem->signal) {
		text_puts(text, "A snapshot: the process did not die");
		return;
	}
	signal_name(post_mortem->signal, name);
	text_printf(text, "Killed by %s", name);
	if (code_name)
		text_printf(text, " (%s: %s)", code_name,
			    signal_code_text(post_mortem->signal, post_mortem->code));
	else if (post_mortem->code)
		text_printf(text, " (code %d)", post_mortem->code);
	if (post_mortem->has_addr)
		text_printf(text, " at address 0x%" PRIx64, post_mortem->addr);
	if (post_mortem->raised_again)
		text_puts(text, ", raised again by a handler of the process");
	else if (post_mortem->sent_by_itself)
		text_puts(text, ", sent by itself");
	else if (post_mortem->has_sender)
		text_printf(text, ", sent by process %d of user %u", post_mortem->sender_pid,
			    post_mortem->sender_uid);
}

void post_mortem_append_head(struct text *text, const struct post_mortem *post_mortem,
			     const struct run_info *info)
{
	text_puts(text, "Core file ");
	label_append_string(text, post_mortem->core_path);
	if (info->target.pid)
		text_printf(text, " of process %d", info->target.pid);
	text_puts(text, ": ");
	label_append_string(text, info->target.command_line);
	text_puts(text, "\n");
	post_mortem_append_death(text, post_mortem);
	text_puts(text, "\n");
	if (post_mortem->finding)
		text_printf(text, "%s\n", post_mortem->finding);
	text_printf(text, "CPython %s", info->python.version);
	if (post_mortem->executable) {
		text_puts(text, ", ");
		label_append_string(text, post_mortem->executable);
	}
	text_puts(text, "\n");
}

static void append_modules(struct text *text, const struct post_mortem *post_mortem)
{
	if (!post_mortem->modules)
		return;
	text_puts(text, "\nModules:\n");
	for (size_t i = 0; i < post_mortem->nr_modules; i++) {
		const struct post_mortem_module *module = &post_mortem->modules[i];

		text_printf(text, "  0x%" PRIx64 "-0x%" PRIx64 " ", module->start, module->end);
		label_append_string(text, module->path);
		text_printf(text, "\n    build ID %s, %s",
			    module->build_id ? module->build_id : "not in the core", module->state);
		if (module->file) {
			text_puts(text, ": ");
			label_append_string(text, module->file);
		}
		text_puts(text, "\n");
	}
}

void post_mortem_append_end(struct text *text, const struct post_mortem *post_mortem)
{
	const struct problems *problems = post_mortem->problems;

	if (post_mortem->nr_native_threads)
		text_printf(text, "\n%zu more thread%s unknown to Python.\n",
			    post_mortem->nr_native_threads,
			    text_plural(post_mortem->nr_native_threads));
	append_modules(text, post_mortem);
	if (!problems->nr_sentences)
		return;
	text_puts(text, "\nProblems:\n");
	for (size_t i = 0; i < problems->nr_sentences; i++) {
		text_puts(text, "  ");
		label_append_string(text, problems->sentences[i]);
		text_puts(text, "\n");
	}
}

static void write_death(struct json *json, const struct post_mortem *post_mortem)
{
	struct text text = {0};
	char name[SIGNAL_NAME_MAX_BYTES];
	char addr[sizeof("0x0123456789abcdef")];

	if (!post_mortem->signal) {
		json_null(json);
		return;
	}
	signal_name(post_mortem->signal, name);
	(void)snprintf(addr, sizeof(addr), "0x%" PRIx64, post_mortem->addr);
	post_mortem_append_death(&text, post_mortem);
	json_object_begin(json);
	json_key(json, "signal");
	json_i64(json, post_mortem->signal);
	json_member_string(json, "name", name);
	json_key(json, "code");
	json_i64(json, post_mortem->code);
	json_member_string(json, "code_name", code_name_of(post_mortem));
	json_member_string(json, "address", post_mortem->has_addr ? addr : NULL);
	json_key(json, "sender_pid");
	if (post_mortem->has_sender)
		json_i64(json, post_mortem->sender_pid);
	else
		json_null(json);
	json_key(json, "sender_uid");
	if (post_mortem->has_sender)
		json_i64(json, post_mortem->sender_uid);
	else
		json_null(json);
	json_member_bool(json, "raised_again", post_mortem->raised_again);
	json_member_string(json, "finding", post_mortem->finding);
	json_member_string(json, "text", text_string(&text));
	json_object_end(json);
	text_done(&text);
}

static void write_address(struct json *json, const char *key, uint64_t addr)
{
	char text[sizeof("0x0123456789abcdef")];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	json_member_string(json, key, text);
}

static void write_modules(struct json *json, const struct post_mortem *post_mortem)
{
	json_key(json, "modules");
	json_array_begin(json);
	for (size_t i = 0; i < post_mortem->nr_modules; i++) {
		const struct post_mortem_module *module = &post_mortem->modules[i];

		json_object_begin(json);
		write_address(json, "start", module->start);
		write_address(json, "end", module->end);
		json_member_string(json, "path", module->path);
		json_member_string(json, "build_id", module->build_id);
		json_member_string(json, "file", module->file);
		json_member_string(json, "state", module->state);
		json_object_end(json);
	}
	json_array_end(json);
}

void post_mortem_write_json(struct json *json, const struct post_mortem *post_mortem)
{
	json_member_string(json, "core", post_mortem->core_path);
	json_key(json, "argv");
	if (post_mortem->arguments) {
		json_array_begin(json);
		for (size_t i = 0; i < post_mortem->nr_arguments; i++)
			json_string(json, post_mortem->arguments[i]);
		json_array_end(json);
	} else {
		json_null(json);
	}
	json_member_string(json, "executable", post_mortem->executable);
	json_key(json, "death");
	write_death(json, post_mortem);
	json_member_u64(json, "core_bytes", post_mortem->core_bytes);
	json_member_u64(json, "truncated_bytes", post_mortem->truncated_bytes);
	json_member_u64(json, "nr_native_threads", post_mortem->nr_native_threads);
	json_key(json, "problems");
	json_array_begin(json);
	for (size_t i = 0; i < post_mortem->problems->nr_sentences; i++)
		json_string(json, post_mortem->problems->sentences[i]);
	json_array_end(json);
	if (post_mortem->modules)
		write_modules(json, post_mortem);
}
