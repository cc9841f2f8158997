/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_name.h"

#include <assert.h>
#include <string.h>

/* The name depends on the first arguments only. A path has up to 4,096 bytes. */
enum { MAX_CMDLINE_BYTES = 16384 };

/* A part of the arguments: not terminated. */
struct slice {
	const char *bytes;
	size_t length;
};

/* What is left of the arguments. */
struct arguments {
	const char *at;
	const char *end;
};

/* The name so far. It is always terminated. */
struct name {
	char *bytes;
	size_t length;
};

/* Slices. */

static bool is_text(struct slice slice, const char *text)
{
	return slice.length == strlen(text) && memcmp(slice.bytes, text, slice.length) == 0;
}

static bool is_any(struct slice slice, const char *const *texts, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (is_text(slice, texts[i]))
			return true;
	return false;
}

static bool starts_with(struct slice slice, const char *text)
{
	return slice.length >= strlen(text) && memcmp(slice.bytes, text, strlen(text)) == 0;
}

static bool ends_with(struct slice slice, const char *text)
{
	const size_t length = strlen(text);

	return slice.length >= length &&
	       memcmp(slice.bytes + slice.length - length, text, length) == 0;
}

static bool contains(struct slice slice, const char *text)
{
	return memmem(slice.bytes, slice.length, text, strlen(text)) != NULL;
}

/* The slice from offset on, which may be its end. */
static struct slice from(struct slice slice, size_t offset)
{
	return (struct slice){slice.bytes + offset, slice.length - offset};
}

/* The bytes before the first c, or all of them. */
static struct slice before(struct slice slice, char c)
{
	const char *found = memchr(slice.bytes, c, slice.length);

	return (struct slice){slice.bytes, found ? (size_t)(found - slice.bytes) : slice.length};
}

/* Where the last '/' is, plus one; 0 without one. */
static size_t after_last_slash(struct slice slice)
{
	const char *slash = memrchr(slice.bytes, '/', slice.length);

	return slash ? (size_t)(slash - slice.bytes) + 1 : 0;
}

/* The last component of a path, without slashes at its end; "/" has none and stays. */
static struct slice base_name(struct slice path)
{
	while (path.length > 1 && path.bytes[path.length - 1] == '/')
		path.length--;
	return path.length > 1 ? from(path, after_last_slash(path)) : path;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The length of the dotted name that the slice begins with: letters, digits, '_' and '.'. */
static size_t dotted_length(struct slice slice)
{
	size_t length = 0;

	if (!slice.length || !is_letter(slice.bytes[0]))
		return 0;
	while (length < slice.length &&
	       (is_letter(slice.bytes[length]) || is_digit(slice.bytes[length]) ||
		slice.bytes[length] == '.'))
		length++;
	return length;
}

static bool is_module(struct slice slice)
{
	return slice.length && dotted_length(slice) == slice.length;
}

/* Whether it looks like "package.module:name", or "package.module:name()". */
static bool is_application(struct slice slice)
{
	const struct slice module = before(slice, ':');

	if (!is_module(module) || module.length == slice.length)
		return false;
	if (ends_with(slice, "()"))
		slice.length -= 2;
	return slice.length > module.length && is_module(from(slice, module.length + 1));
}

/* Arguments. */

/* Take the next argument. Returns false at the end. */
static bool take(struct arguments *arguments, struct slice *ret_argument)
{
	if (arguments->at >= arguments->end)
		return false;
	*ret_argument = before(
		(struct slice){arguments->at, (size_t)(arguments->end - arguments->at)}, '\0');
	arguments->at += ret_argument->length;
	if (arguments->at < arguments->end)
		arguments->at++;
	return true;
}

/* The name. */

static void append(struct name *name, struct slice slice)
{
	const size_t room = PROCESS_NAME_MAX_BYTES - 1 - name->length;
	size_t length = slice.length;

	if (length > room) {
		length = room;
		/* Back to the first byte of a character, which is at most three bytes away. */
		for (int i = 0; i < 3 && length && (slice.bytes[length] & 0xc0) == 0x80; i++)
			length--;
	}
	memcpy(name->bytes + name->length, slice.bytes, length);
	name->length += length;
	name->bytes[name->length] = '\0';
}

static void append_text(struct name *name, const char *text)
{
	append(name, (struct slice){text, strlen(text)});
}

static void append_word(struct name *name, struct slice slice)
{
	append_text(name, " ");
	append(name, slice);
}

/* The application that a server runs. */

static bool is_server(struct slice program)
{
	static const char *const servers[] = {"gunicorn", "uvicorn",	    "hypercorn", "daphne",
					      "granian",  "waitress-serve", "waitress"};

	return is_any(program, servers, sizeof(servers) / sizeof(*servers));
}

/* Whether an option of a server may have the next argument as its value. */
static bool takes_next(struct slice option)
{
	static const char *const flags[] = {
		"-D",		"--daemon",	"--reload",	   "--preload",
		"--factory",	"--debug",	"--proxy-headers", "--no-access-log",
		"--access-log", "--use-colors", "--no-sendfile"};

	if (!starts_with(option, "-") || memchr(option.bytes, '=', option.length))
		return false;
	if (option.length > 2 && option.bytes[1] != '-')
		return false; /* -w4: the value is part of it */
	return !is_any(option, flags, sizeof(flags) / sizeof(*flags));
}

/* Append the first operand that names an application. */
static void append_operand(struct name *name, struct arguments arguments)
{
	bool may_be_value = false;

	for (struct slice argument; take(&arguments, &argument);) {
		if (!may_be_value && is_application(argument)) {
			append_word(name, argument);
			return;
		}
		may_be_value = takes_next(argument);
	}
}

/* Append the application that -A or --app names. */
static void append_app_option(struct name *name, struct arguments arguments)
{
	for (struct slice argument; take(&arguments, &argument);) {
		struct slice value = {NULL, 0};

		if (is_text(argument, "-A") || is_text(argument, "--app")) {
			if (!take(&arguments, &value))
				return;
		} else if (starts_with(argument, "--app=")) {
			value = from(argument, strlen("--app="));
		} else if (starts_with(argument, "-A")) {
			value = from(argument, 2);
		} else {
			continue;
		}
		if (is_module(value) || is_application(value)) {
			append_text(name, " -A");
			append_word(name, value);
		}
		return;
	}
}

static void append_application(struct name *name, struct slice program, struct arguments arguments)
{
	if (is_server(program))
		append_operand(name, arguments);
	else if (is_text(program, "celery") || is_text(program, "flask"))
		append_app_option(name, arguments);
}

/* Python's own arguments. */

/* python, python3, python3.13t, python3-dbg */
static bool is_python(struct slice program)
{
	if (!starts_with(program, "python"))
		return false;
	const struct slice version = from(program, strlen("python"));

	return !version.length || is_digit(version.bytes[0]) || is_text(version, "-dbg");
}

/*
 * What multiprocessing starts: python -c "from multiprocessing.spawn import spawn_main; …". Its
 * forkserver begins with "import sys; " in 3.15, and in the latest releases of 3.13 and 3.14.
 */
static void append_code(struct name *name, struct slice code)
{
	static const char import[] = "import sys; ";
	static const char begin[] = "from multiprocessing.";
	static const char *const modules[] = {"spawn", "forkserver", "resource_tracker",
					      "semaphore_tracker"};
	const size_t begin_length = sizeof(begin) - 1;

	if (starts_with(code, import))
		code = from(code, sizeof(import) - 1);
	if (starts_with(code, begin)) {
		const struct slice module = before(from(code, begin_length), ' ');

		if (is_any(module, modules, sizeof(modules) / sizeof(*modules))) {
			append_text(name, " (multiprocessing ");
			append(name, module);
			append_text(name, ")");
			return;
		}
	}
	append_text(name, " -c");
}

static void append_module(struct name *name, struct slice module, struct arguments arguments)
{
	append_text(name, " -m");
	if (!is_module(module))
		return;
	append_word(name, module);
	append_application(name, module, arguments);
}

/* Names that many programs have; the folder says which one it is. */
static bool is_common_script(struct slice base)
{
	static const char *const scripts[] = {"__main__.py", "manage.py", "main.py", "app.py",
					      "run.py",	     "wsgi.py",	  "asgi.py"};

	return is_any(base, scripts, sizeof(scripts) / sizeof(*scripts));
}

/* Whether a script is a command of its own, usually started through its first line, #!. */
static bool is_command(struct slice script, struct slice base)
{
	return memchr(script.bytes, '/', script.length) && !contains(base, ".py") &&
	       !ends_with(base, ".zip");
}

static void append_script(struct name *name, struct slice script, struct arguments arguments)
{
	const struct slice base = base_name(script);

	if (!base.length)
		return;
	if (is_command(script, base)) {
		name->length = 0;
		append(name, base);
		append_application(name, base, arguments);
		return;
	}
	if (is_common_script(base) && base.bytes > script.bytes + 1) {
		const struct slice folder = base_name(
			(struct slice){script.bytes, (size_t)(base.bytes - script.bytes)});

		append_word(name, folder);
		append_text(name, "/");
		append(name, base);
		return;
	}
	append_word(name, base);
}

/* What an argument of Python is. */
enum kind {
	KIND_FLAGS,
	KIND_VALUE_NEXT, /* the next argument is its value */
	KIND_CODE,
	KIND_MODULE,
};

/*
 * Read the letters of an argument that begins with '-'. *ret_value is what follows the last
 * letter, the value unless it is empty.
 */
static enum kind read_letters(struct slice argument, struct slice *ret_value)
{
	for (size_t i = 1; i < argument.length; i++) {
		*ret_value = from(argument, i + 1);
		switch (argument.bytes[i]) {
		case 'c':
			return KIND_CODE;
		case 'm':
			return KIND_MODULE;
		case 'W':
		case 'X':
			return ret_value->length ? KIND_FLAGS : KIND_VALUE_NEXT;
		default:
			break;
		}
	}
	return KIND_FLAGS;
}

/* Append what Python runs. */
static void append_python(struct name *name, struct arguments arguments)
{
	struct slice argument, value;

	while (take(&arguments, &argument)) {
		if (is_text(argument, "-")) {
			append_text(name, " -");
			return;
		}
		const bool ends_options = is_text(argument, "--");

		if (ends_options && !take(&arguments, &argument))
			return;
		if (ends_options || !starts_with(argument, "-")) {
			append_script(name, argument, arguments);
			return;
		}
		if (starts_with(argument, "--")) {
			if (is_text(argument, "--check-hash-based-pycs"))
				(void)take(&arguments, &value);
			continue;
		}
		switch (read_letters(argument, &value)) {
		case KIND_FLAGS:
			break;
		case KIND_VALUE_NEXT:
			(void)take(&arguments, &value);
			break;
		case KIND_CODE:
			if (!value.length && !take(&arguments, &value))
				value = (struct slice){"", 0};
			append_code(name, value);
			return;
		case KIND_MODULE:
			if (!value.length && !take(&arguments, &value))
				value = (struct slice){"", 0};
			append_module(name, value, arguments);
			return;
		}
	}
}

/* The first argument. */

/* Whether a program wrote this over its arguments: "gunicorn: worker [app:wsgi]". */
static bool is_title(struct slice first)
{
	const struct slice word = before(first, ' ');

	return word.length > 1 && word.length < first.length && ends_with(word, ":") &&
	       !contains(word, "/");
}

/* Whether a word of a title may be an argument, or begin a list of them. */
static bool is_suspicious(struct slice word)
{
	return starts_with(word, "-") || starts_with(word, "(") || starts_with(word, "/") ||
	       contains(word, "=") || contains(word, "://");
}

static void append_title(struct name *name, struct slice title)
{
	size_t end = 0; /* of the last word that is shown */

	for (size_t at = 0; at < title.length;) {
		const struct slice word = before(from(title, at), ' ');

		if (is_suspicious(word))
			break;
		if (word.length)
			end = at + word.length;
		at += word.length + 1;
	}
	append(name, (struct slice){title.bytes, end});
}

/*
 * The program's name. A blank may belong to the path. Otherwise the program wrote a title, of which
 * only the first word is certain not to be an argument.
 */
static struct slice program_name(struct slice first)
{
	if (!starts_with(first, "/") || contains(first, " -") || contains(first, ":") ||
	    contains(first, "="))
		first = before(first, ' ');
	first = base_name(first);
	if (first.length > 1 && first.bytes[0] == '-')
		first = from(first, 1); /* a login shell */
	return before(first, ' ');
}

void process_name_format(const char *cmdline, size_t length, char ret_name[PROCESS_NAME_MAX_BYTES])
{
	struct arguments arguments = {cmdline, cmdline + length};
	struct name name = {ret_name, 0};
	struct slice first, program;

	assert(cmdline);
	ret_name[0] = '\0';
	if (!take(&arguments, &first))
		return;
	if (is_title(first)) {
		append_title(&name, first);
		return;
	}
	program = program_name(first);
	append(&name, program);
	if (is_python(program))
		append_python(&name, arguments);
}

void process_name_read(const struct process *process, char ret_name[PROCESS_NAME_MAX_BYTES])
{
	char cmdline[MAX_CMDLINE_BYTES];
	ssize_t length = process_read_file(process, "cmdline", cmdline, sizeof(cmdline));

	ret_name[0] = '\0';
	if (length > 0)
		process_name_format(cmdline, (size_t)length, ret_name);
	if (ret_name[0])
		return;
	length = process_read_file(process, "comm", ret_name, PROCESS_NAME_MAX_BYTES);
	ret_name[length > 0 ? strcspn(ret_name, "\n") : 0] = '\0';
}

bool process_is_called_python(const struct process *process)
{
	char cmdline[MAX_CMDLINE_BYTES];
	const ssize_t length = process_read_file(process, "cmdline", cmdline, sizeof(cmdline));
	struct arguments arguments = {cmdline, cmdline + (length > 0 ? length : 0)};
	struct slice first;

	return take(&arguments, &first) && is_python(program_name(first));
}
