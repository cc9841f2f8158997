/* SPDX-License-Identifier: MIT */
/* pysample completion: prints shell completion scripts, generated from the option tables. */
#include <stdio.h>
#include <string.h>

#include "cmd/options.h"
#include "cmd/print.h"
#include "output/format.h"

/* How a shell completes the value of an option. */
enum value_kind { VALUE_OTHER, VALUE_WORDS, VALUE_FILE, VALUE_FOLDER, VALUE_PID };

static enum value_kind value_kind(const struct option_spec *spec)
{
	static const struct {
		const char *argument;
		enum value_kind kind;
	} kinds[] = {
		{"FILE", VALUE_FILE},	   {"BASE", VALUE_FILE}, {"DIR", VALUE_FOLDER},
		{"DIR:DIR", VALUE_FOLDER}, {"PID", VALUE_PID},	 {"FORMAT", VALUE_WORDS},
	};

	if (spec->words)
		return VALUE_WORDS;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(spec->argument, kinds[i].argument) == 0)
			return kinds[i].kind;
	return VALUE_OTHER;
}

static void print_words(const struct option_spec *spec)
{
	size_t nr_formats;
	const struct format *formats = format_list(&nr_formats);

	if (spec->words) {
		(void)fputs(spec->words, stdout);
		return;
	}
	for (size_t i = 0; i < nr_formats; i++)
		(void)printf("%s%s", i ? " " : "", formats[i].name);
}

/* Print a short description: the beginning of the option's help, single-quoted for a shell. */
static void print_description(const struct option_spec *spec)
{
	size_t length = strcspn(spec->help, ":;(.\n");

	if (length && spec->help[length - 1] == ' ')
		length--;
	(void)putchar('\'');
	for (size_t i = 0; i < length; i++)
		(void)printf(spec->help[i] == '\'' ? "'\\''" : "%c", spec->help[i]);
	(void)putchar('\'');
}

/* Call print() for each option of a command, --help last. */
static void for_each(const struct command *command,
		     void (*print)(const struct command *command, const struct option_spec *spec))
{
	for (size_t i = 0; i < command->nr_groups; i++)
		for (size_t k = 0; k < command->groups[i].nr_specs; k++)
			print(command, &command->groups[i].specs[k]);
	print(command, &help_option);
}

/* How each shell completes the operands. */
static const struct {
	const char *bash, *zsh, *fish;
} operands[] = {
	[OPERAND_PID] = {"_pysample_pids", "'*:process:_pids'", "-f -a '(__fish_complete_pids)'"},
	[OPERAND_FILE] = {"_pysample_files", "'*:file:_files'", "-F"},
	[OPERAND_PID_OR_FILE] = {"_pysample_pids; _pysample_files",
				 "'*:process or file:{_pids; _files}'",
				 "-F -a '(__fish_complete_pids)'"},
	[OPERAND_COMMAND] = {"COMPREPLY=($(compgen -c -f -- \"$cur\"))", "'*::command:_normal'",
			     "-f -a '(__fish_complete_subcommand)'"},
	[OPERAND_SHELL] = {"COMPREPLY=($(compgen -W \"bash fish zsh\" -- \"$cur\"))",
			   "'*:shell:(bash fish zsh)'", "-f -a 'bash fish zsh'"},
	[OPERAND_NONE] = {"return", "", "-f"},
};

/* bash. */

static void print_bash_name(const struct command *command, const struct option_spec *spec)
{
	(void)command;
	if (spec->letter)
		(void)printf(" -%c", spec->letter);
	(void)printf(" --%s", spec->name);
}

static void print_bash_value(const struct command *command, const struct option_spec *spec)
{
	static const char *const actions[] = {
		[VALUE_OTHER] = "return ;;",
		[VALUE_FILE] = "_pysample_files; return ;;",
		[VALUE_FOLDER] = "COMPREPLY=($(compgen -d -- \"$cur\")); return ;;",
		[VALUE_PID] = "_pysample_pids; return ;;",
	};
	enum value_kind kind;

	if (!spec->argument || spec->argument[0] == '[')
		return;
	kind = value_kind(spec);
	(void)fputs("\t\t", stdout);
	if (spec->letter)
		(void)printf("%s:-%c|", command->name, spec->letter);
	(void)printf("%s:--%s) ", command->name, spec->name);
	if (kind != VALUE_WORDS) {
		(void)puts(actions[kind]);
		return;
	}
	(void)fputs("COMPREPLY=($(compgen -W \"", stdout);
	print_words(spec);
	(void)puts("\" -- \"$cur\")); return ;;");
}

static void print_bash(void)
{
	(void)fputs("# bash completion for pysample\n"
		    "_pysample_files() {\n"
		    "\tcompopt -o filenames 2>/dev/null\n"
		    "\tCOMPREPLY+=($(compgen -f -- \"$cur\"))\n"
		    "}\n"
		    "_pysample_pids() {\n"
		    "\tCOMPREPLY+=($(compgen -W \"$(pgrep python)\" -- \"$cur\"))\n"
		    "}\n"
		    "_pysample() {\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		    "\tlocal command=${COMP_WORDS[1]} options=\n"
		    "\tCOMPREPLY=()\n"
		    "\tif ((COMP_CWORD == 1)); then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"",
		    stdout);
	for (size_t i = 0; commands[i]; i++)
		(void)printf("%s ", commands[i]->name);
	(void)fputs("--help --version\" -- \"$cur\"))\n"
		    "\t\treturn\n"
		    "\tfi\n"
		    "\tcase $command:$prev in\n",
		    stdout);
	for (size_t i = 0; commands[i]; i++)
		for_each(commands[i], print_bash_value);
	(void)fputs("\tesac\n"
		    "\tcase $command in\n",
		    stdout);
	for (size_t i = 0; commands[i]; i++) {
		(void)printf("\t\t%s) options=\"", commands[i]->name);
		for_each(commands[i], print_bash_name);
		(void)printf("\"; [[ $cur == -* ]] || { %s; } ;;\n",
			     operands[commands[i]->operands].bash);
	}
	(void)fputs("\tesac\n"
		    "\tif [[ $cur == -* ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
		    "\tfi\n"
		    "}\n"
		    "complete -F _pysample pysample\n",
		    stdout);
}

/* zsh. */

static void print_zsh_option(const struct command *command, const struct option_spec *spec)
{
	static const char *const actions[] = {
		[VALUE_OTHER] = ": ",
		[VALUE_FILE] = ":_files",
		[VALUE_FOLDER] = ":_files -/",
		[VALUE_PID] = ":_pids",
	};

	(void)command;
	(void)fputs("\t\t\t", stdout);
	if (spec->letter)
		(void)printf("{-%c,--%s}", spec->letter, spec->name);
	else
		(void)printf("--%s", spec->name);
	(void)fputs("'['", stdout);
	print_description(spec);
	(void)fputs("']", stdout);
	if (spec->argument && spec->argument[0] != '[') {
		(void)printf(":%s", spec->argument);
		if (value_kind(spec) == VALUE_WORDS) {
			(void)fputs(":(", stdout);
			print_words(spec);
			(void)putchar(')');
		} else {
			(void)fputs(actions[value_kind(spec)], stdout);
		}
	}
	(void)puts("' \\");
}

static void print_zsh(void)
{
	(void)fputs("#compdef pysample\n"
		    "local -a commands\n"
		    "commands=(\n",
		    stdout);
	for (size_t i = 0; commands[i]; i++)
		(void)printf("\t'%s:%s'\n", commands[i]->name, commands[i]->summary);
	(void)fputs(")\n"
		    "if ((CURRENT == 2)); then\n"
		    "\t_describe command commands\n"
		    "\treturn\n"
		    "fi\n"
		    "shift words\n"
		    "((CURRENT--))\n"
		    "case $words[1] in\n",
		    stdout);
	for (size_t i = 0; commands[i]; i++) {
		(void)printf("\t%s)\n\t\t_arguments -s -S \\\n", commands[i]->name);
		for_each(commands[i], print_zsh_option);
		(void)printf("\t\t\t%s ;;\n", operands[commands[i]->operands].zsh);
	}
	(void)puts("esac");
}

/* fish. */

static void print_fish_option(const struct command *command, const struct option_spec *spec)
{
	(void)printf("complete -c pysample -n '__fish_seen_subcommand_from %s' -l %s",
		     command->name, spec->name);
	if (spec->letter)
		(void)printf(" -s %c", spec->letter);
	if (spec->argument && spec->argument[0] != '[') {
		(void)fputs(value_kind(spec) == VALUE_FILE || value_kind(spec) == VALUE_FOLDER
				    ? " -rF"
				    : " -x",
			    stdout);
		if (value_kind(spec) == VALUE_WORDS) {
			(void)fputs(" -a '", stdout);
			print_words(spec);
			(void)putchar('\'');
		} else if (value_kind(spec) == VALUE_PID) {
			(void)fputs(" -a '(__fish_complete_pids)'", stdout);
		}
	}
	(void)fputs(" -d ", stdout);
	print_description(spec);
	(void)putchar('\n');
}

static void print_fish(void)
{
	for (size_t i = 0; commands[i]; i++) {
		(void)printf("complete -c pysample -f -n __fish_use_subcommand -a %s -d '%s'\n",
			     commands[i]->name, commands[i]->summary);
		(void)printf("complete -c pysample -n '__fish_seen_subcommand_from %s' %s\n",
			     commands[i]->name, operands[commands[i]->operands].fish);
		for_each(commands[i], print_fish_option);
	}
}

static enum exit_status run(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = {{"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};
	enum exit_status status;
	bool is_done;
	int first;

	status = options_parse(&completion_command, argc, argv, NULL, &first, &is_done);
	if (status != EXIT_OK || is_done)
		return status;
	for (size_t i = 0; argc - first == 1 && i < sizeof(shells) / sizeof(*shells); i++)
		if (strcmp(argv[first], shells[i].name) == 0) {
			shells[i].print();
			return print_finish(EXIT_OK);
		}
	print_error("expected a shell: pysample completion bash|fish|zsh");
	return EXIT_USAGE;
}

const struct command completion_command = {
	.name = "completion",
	.summary = "print a completion script for bash, fish or zsh",
	.usage = "bash|fish|zsh",
	.about =
		"Prints a script that makes the shell complete commands, options and their values.\n"
		"Installing pysample puts this script where the shell looks for it.\n"
		"\n",
	.operands = OPERAND_SHELL,
	.epilogue = "Examples:\n"
		    "  . <(pysample completion bash)                  for this shell\n"
		    "  pysample completion fish > ~/.config/fish/completions/pysample.fish\n"
		    "  pysample completion zsh > ~/.zfunc/_pysample   with ~/.zfunc in fpath\n",
	.run = run,
};
