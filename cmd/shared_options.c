/* SPDX-License-Identifier: MIT */
#include "cmd/shared_options.h"

#include "cmd/option_values.h"
#include "cmd/outputs.h"
#include "cmd/print.h"
#include "cmd/target.h"
#include "output/artefact.h"
#include "output/profile/profile.h"

/* Longest value of a variable shown, in characters: the default and the limit. */
enum { VALUE_USUAL_CHARS = 100, VALUE_MAX_CHARS = 65536 };

static bool apply_path(void *outputs, const char *value)
{
	return outputs_add_path(outputs, value);
}

static bool apply_format(void *outputs, const char *value)
{
	return outputs_add_format(outputs, value);
}

static bool apply_wait(void *wait, const char *value)
{
	return target_parse_wait(value, wait);
}

static bool apply_mode(void *choice, const char *value)
{
	enum profile_mode mode;

	/* Modes without time are for core files. */
	if (!profile_mode_parse(value, &mode) || !profile_mode_is_time(mode)) {
		print_error("unknown mode '%s': use busy, wall, cpu, gil or exception", value);
		return false;
	}
	((struct mode_choice *)choice)->is_made = true;
	((struct mode_choice *)choice)->mode = mode;
	return true;
}

bool mode_choose(const struct mode_choice *choice, enum profile_mode usual,
		 enum profile_mode *ret_mode)
{
	if (choice->shows_idle && choice->is_made && choice->mode != PROFILE_WALL) {
		print_error("--idle shows all samples, and --mode %s does not: leave out one",
			    profile_mode_name(choice->mode));
		return false;
	}
	*ret_mode = choice->shows_idle ? PROFILE_WALL : choice->is_made ? choice->mode : usual;
	return true;
}

bool name_choice_add(struct name_choice *choice, const char *option, const char *value)
{
	if (choice->nr == NAME_CHOICE_MAX) {
		print_error("%s may be given %d times: use a pattern such as 'worker*'", option,
			    NAME_CHOICE_MAX);
		return false;
	}
	choice->patterns[choice->nr++] = value;
	return true;
}

static bool apply_thread(void *choice, const char *value)
{
	return name_choice_add(choice, "--thread", value);
}

static bool apply_locals(void *nr_chars, const char *value)
{
	(void)value;
	if (!*(uint32_t *)nr_chars)
		*(uint32_t *)nr_chars = VALUE_USUAL_CHARS;
	return true;
}

static bool apply_max_value(void *nr_chars, const char *value)
{
	uint32_t nr;

	if (!parse_count(value, VALUE_MAX_CHARS, &nr) || nr == 0) {
		print_error("--max-value must be a number from 1 to %d, not '%s'", VALUE_MAX_CHARS,
			    value);
		return false;
	}
	*(uint32_t *)nr_chars = nr;
	return true;
}

const struct option_spec output_options[2] = {
	{"output", "FILE",
	 "output file; - is stdout, the default (for run: a recording\n"
	 "in the current folder). May be given several times",
	 .letter = 'o', .apply = apply_path},
	{"format", "FORMAT",
	 "format of the adjacent -o, or of stdout.\n"
	 "Default: from the suffix of FILE, else summary on a terminal\n"
	 "and collapsed in a file or pipe",
	 .letter = 'f', .apply = apply_format},
};

const struct option_spec open_option[1] = {
	{"open", NULL,
	 "open the page when it is written: with xdg-open on a desktop,\n"
	 "else with the program in $BROWSER; under sudo as the user who\n"
	 "called it. Without a page among the -o, one is written in the\n"
	 "current folder: attach: pysample-PID.html; run:\n"
	 "pysample-NAME-PID.html; report: FILE.html",
	 .action = OPTION_SETS, .at = offsetof(struct outputs, opens)},
};

const struct option_spec row_options[3] = {
	{"functions", NULL, "a row for each function, with its first line (default)",
	 .action = OPTION_CLEARS, .at = offsetof(struct profile_options, by_line)},
	{"lines", NULL, "a row for each line that was executing", .action = OPTION_SETS,
	 .at = offsetof(struct profile_options, by_line)},
	{"threads", NULL, "a root frame for each thread", .letter = 't', .action = OPTION_SETS,
	 .at = offsetof(struct profile_options, by_thread)},
};

const struct option_spec processes_option[1] = {
	{"merge-processes", NULL,
	 "merge equal stacks of all processes: without the root frames\n"
	 "that several processes have in collapsed stacks, flame graphs,\n"
	 "summaries and callgrind files",
	 .action = OPTION_CLEARS, .at = offsetof(struct profile_options, by_process)},
};

const struct option_spec plumbing_option[1] = {
	{"plumbing", NULL,
	 "keep the C frames that are the same in every program: from\n"
	 "_start to Py_RunMain and around each call",
	 .action = OPTION_SETS, .at = offsetof(struct profile_options, keep_plumbing)},
};

const struct option_spec layout_options[2] = {
	{"header", NULL,
	 "begin collapsed output with a # line that describes each run;\n"
	 "some tools reject it",
	 .action = OPTION_SETS, .at = offsetof(struct artefact_options, header)},
	{"no-source", NULL, "omit source lines from the formats that show them",
	 .action = OPTION_SETS, .at = offsetof(struct artefact_options, no_source)},
};

const struct option_spec wait_option[1] = {
	{"wait", "TIME",
	 "how long to wait for the process to start an interpreter;\n"
	 "0: do not wait. Default: 500ms if it was just started or has\n"
	 "loaded CPython; for run: as long as it runs",
	 .apply = apply_wait},
};

const struct option_spec thread_option[1] = {
	{"thread", "NAME|TID",
	 "only threads of this name or id; a pattern such as 'worker-*'\n"
	 "matches names. May be given several times",
	 .apply = apply_thread},
};

const struct option_spec quiet_option[1] = {
	{"quiet", NULL, "print only errors to stderr", .letter = 'q', .action = OPTION_SETS,
	 .at = 0},
};

const struct option_spec process_name_option[1] = {
	{"name", "PATTERN",
	 "instead of PID: the Python process whose name or command line\n"
	 "has this text in it, or matches if there is a *, ? or [. Of a\n"
	 "process and its descendants, the process is meant",
	 .action = OPTION_STORES, .at = 0},
};

const struct option_spec full_command_option[1] = {
	{"full-command", NULL,
	 "show all arguments of the program, which may hold passwords;\n"
	 "default: its name, and the script or module it runs",
	 .action = OPTION_SETS, .at = 0},
};

#define MODE_HELP                                                           \
	"which samples count, and by what:\n"                               \
	"busy: samples of threads that do not wait, by elapsed time:\n"     \
	"they hold the GIL, wait for it (3.15), or are on a CPU or ready\n" \
	"to run. Formats that keep every sample have all;\n"                \
	"wall: all samples, by elapsed time;\n"                             \
	"cpu: only samples that used the CPU, by that CPU time;\n"          \
	"gil: only samples of threads that held the GIL;\n"                 \
	"exception: only samples while an exception was handled.\n"
#define MODE_WORDS "busy wall cpu gil exception"
#define IDLE_HELP  "show threads that wait, too: --mode wall"

const struct option_spec mode_options[2] = {
	{"mode", "NAME", MODE_HELP "Default: busy. A recording keeps all samples",
	 .apply = apply_mode, .words = MODE_WORDS},
	{"idle", NULL, IDLE_HELP, .action = OPTION_SETS,
	 .at = offsetof(struct mode_choice, shows_idle)},
};

const struct option_spec recorded_mode_options[2] = {
	{"mode", "NAME",
	 MODE_HELP "Default: that of the first recording, or wall if one does not\n"
		   "tell which threads waited, and for --state idle",
	 .apply = apply_mode, .words = MODE_WORDS},
	{"idle", NULL, IDLE_HELP, .action = OPTION_SETS,
	 .at = offsetof(struct mode_choice, shows_idle)},
};

const struct option_spec value_options[2] = {
	{"locals", NULL, "show the arguments and local variables of each frame",
	 .apply = apply_locals},
	{"max-value", "N",
	 "truncate values to N characters (default: 100); implies\n"
	 "--locals",
	 .apply = apply_max_value},
};
