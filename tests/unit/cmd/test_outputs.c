/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/outputs.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Run each test in an empty folder, with stdout no terminal and error messages discarded. */
static void enter_folder(void)
{
	char folder[] = "/tmp/pysample-test-XXXXXX";

	cr_assert(mkdtemp(folder) != NULL);
	cr_assert(eq(int, chdir(folder), 0));
	cr_assert(freopen("/dev/null", "w", stdout) != NULL);
	cr_assert(freopen("/dev/null", "w", stderr) != NULL);
}

static void leave_folder(void)
{
	char folder[64];

	cr_assert(getcwd(folder, sizeof(folder)) != NULL);
	for (const char *const *name = (const char *const[]){"a.pysample", "b.collapsed",
							     "c.summary", "link", "fifo", NULL};
	     *name; name++)
		(void)unlink(*name);
	cr_expect(eq(int, rmdir(folder), 0));
}

TestSuite(outputs, .init = enter_folder, .fini = leave_folder);

/* Parse options "o:PATH" and "f:NAME" in this order, then choose formats. */
static bool parse_options(struct outputs *outputs, const char *const *options)
{
	*outputs = (struct outputs){0};
	for (; *options; options++)
		if (!(**options == 'o' ? outputs_add_path : outputs_add_format)(outputs,
										*options + 2))
			return false;
	return outputs_choose(outputs);
}

/* Format the outputs as "PATH=FORMAT PATH=FORMAT …", where - is stdout. */
static void format_outputs(const struct outputs *outputs, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < outputs->nr; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s=%s", i ? " " : "",
					 outputs->list[i].path ? outputs->list[i].path : "-",
					 outputs->list[i].format->name);
}

Test(outputs, format_follows_the_name)
{
	static const struct {
		const char *options[7];
		const char *expected; /* NULL: refused */
	} cases[] = {
		{{NULL}, "-=collapsed"},
		{{"o:-"}, "-=collapsed"},
		{{"f:summary"}, "-=summary"},
		{{"o:-", "f:summary"}, "-=summary"},
		{{"o:x"}, "x=collapsed"},
		{{"o:dir.d/x"}, "dir.d/x=collapsed"},
		{{"o:x.collapsed"}, "x.collapsed=collapsed"},
		{{"o:x.folded"}, "x.folded=collapsed"},
		{{"o:x.txt"}, "x.txt=collapsed"},
		{{"o:x.summary"}, "x.summary=summary"},
		{{"o:x.pysample"}, "x.pysample=recording"},
		{{"o:x.summary.txt"}, "x.summary.txt=collapsed"},
		{{"o:/dev/null"}, "/dev/null=collapsed"},
		{{"f:summary", "o:x"}, "x=summary"},
		{{"o:x", "f:summary"}, "x=summary"},
		{{"o:x.summary", "f:recording"}, "x.summary=recording"},
		{{"o:x", "f:summary", "o:y", "f:collapsed"}, "x=summary y=collapsed"},
		{{"f:summary", "o:x", "f:recording", "o:y"}, "x=summary y=recording"},
		{{"o:x.summary", "o:y.pysample", "o:-"},
		 "x.summary=summary y.pysample=recording "
		 "-=collapsed"},
		{{"f:recording", "o:x", "f:summary"}, "x=recording -=summary"},
		{{"f:summary", "f:recording", "o:x"}, "-=summary x=recording"},
		{{"o:x.nonsense"}, NULL},
		{{"o:.collapsed"}, NULL},
		{{"f:nonsense"}, NULL},
		{{"o:-", "o:-"}, NULL},
		{{"f:summary", "f:collapsed"}, NULL},
		{{"o:x.pysample", "o:y.pysample"}, NULL},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct outputs outputs;
		char text[256];
		const bool done = parse_options(&outputs, cases[i].options);

		cr_expect(eq(int, done, cases[i].expected != NULL), "case %zu", i);
		if (!done)
			continue;
		format_outputs(&outputs, text, sizeof(text));
		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
	}
}

Test(outputs, number_of_outputs_is_limited)
{
	struct outputs outputs = {0};

	for (int i = 0; i < MAX_OUTPUTS; i++)
		cr_assert(outputs_add_path(&outputs, "x"));
	cr_expect(not(outputs_add_path(&outputs, "x")));
}

Test(outputs, aggregated_formats_need_no_samples)
{
	static const struct {
		const char *options[4];
		bool needs_samples, has_recording;
	} cases[] = {
		{{"o:x.collapsed", "o:y.summary"}, false, false},
		{{"o:x.collapsed", "o:y.pysample"}, true, true},
		{{"o:x.collapsed", "o:y.html"}, true, false},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct outputs outputs;

		cr_assert(parse_options(&outputs, cases[i].options));
		cr_expect(eq(int, outputs_need_samples(&outputs), cases[i].needs_samples));
		cr_expect(eq(int, outputs_recording(&outputs) != NULL, cases[i].has_recording));
		cr_expect(eq(str, (char *)outputs_next(&outputs)->path, (char *)"x.collapsed"));
		outputs.of_tree = true;
		cr_expect(outputs_need_samples(&outputs));
	}
}

Test(outputs, two_outputs_to_one_file_are_refused)
{
	static const char *const same[] = {"o:b.collapsed", "o:link", NULL};
	static const char *const different[] = {"o:b.collapsed", "o:c.summary", NULL};
	struct outputs outputs;
	struct output_file other = {0};
	struct message message = {0};

	cr_assert(eq(int, symlink("b.collapsed", "link"), 0));
	cr_assert(parse_options(&outputs, same));
	cr_expect(eq(int, outputs_open(&outputs, &message), EXIT_USAGE));
	cr_expect(strstr(message.text, "b.collapsed and link are the same file") != NULL);
	outputs_discard(&outputs);

	cr_assert(parse_options(&outputs, different));
	cr_assert(eq(int, outputs_open(&outputs, &message), EXIT_OK));
	cr_assert(eq(int, output_file_open("./link", &other, &message), 0));
	cr_expect(outputs_have(&outputs, &other));
	output_file_discard(&other);
	outputs_discard(&outputs);
	cr_expect(eq(int, access("b.collapsed", F_OK), -1));
}

/* A growing file that was never published leaves the old file, and nothing else. */
Test(outputs, published_file_gets_its_name)
{
	static const char *const options[] = {"o:a.pysample", NULL};
	struct outputs outputs;
	struct output_file *file = &outputs.list[0].file;
	struct stat status;
	char text[8] = "";
	FILE *old = fopen("a.pysample", "w");
	int fd;

	cr_assert(old != NULL);
	(void)fputs("old", old);
	cr_assert(eq(int, fclose(old), 0));
	for (int publish = 0; publish < 2; publish++) {
		cr_assert(parse_options(&outputs, options));
		cr_assert(eq(int, outputs_open(&outputs, NULL), EXIT_OK));
		cr_assert(eq(int, output_file_begin_growing(file, NULL), 0));
		cr_assert(eq(sz, (size_t)write(fileno(file->stream), "new", 3), 3));
		cr_assert(eq(int, stat("a.pysample", &status), 0));
		if (publish) {
			cr_assert(eq(int, output_file_publish(file, NULL), 0));
			cr_assert(eq(int, output_file_publish(file, NULL), 0));
			cr_assert(eq(sz, (size_t)write(fileno(file->stream), "er", 2), 2));
		}
		fd = output_file_reopen(file);
		cr_assert(fd >= 0);
		cr_expect(eq(sz, (size_t)read(fd, text, sizeof(text)), publish ? 5 : 3));
		cr_expect(eq(int, close(fd), 0));
		outputs_discard(&outputs);
		fd = open("a.pysample", O_RDONLY);
		memset(text, 0, sizeof(text));
		cr_assert(read(fd, text, sizeof(text)) > 0);
		cr_expect(eq(str, (char *)text, (char *)(publish ? "newer" : "old")));
		cr_expect(eq(int, close(fd), 0));
	}
}

/*
 * A file that ends well has its name, published before or not. One that fails has it only if it
 * was published.
 */
Test(outputs, failed_file_is_kept_only_if_published)
{
	static const struct {
		bool publish;
		int err;
		bool is_there;
	} cases[] = {{false, 0, true}, {true, 0, true}, {true, -5, true}, {false, -5, false}};
	static const char *const options[] = {"o:a.pysample", NULL};

	for (size_t i = 0; i < NR(cases); i++) {
		struct outputs outputs;
		struct output_file *file = &outputs.list[0].file;

		(void)unlink("a.pysample");
		cr_assert(parse_options(&outputs, options));
		cr_assert(eq(int, outputs_open(&outputs, NULL), EXIT_OK));
		cr_assert(eq(int, output_file_begin_growing(file, NULL), 0));
		if (cases[i].publish)
			cr_assert(eq(int, output_file_publish(file, NULL), 0));
		cr_expect(eq(int, output_file_finish(file, cases[i].err, NULL), cases[i].err));
		cr_expect(eq(int, access("a.pysample", F_OK) == 0, cases[i].is_there), "case %zu",
			  i);
		outputs_discard(&outputs);
	}
}

/* Make a folder and begin to write the output file in it. */
static struct output_file *begin_in_folder(struct outputs *outputs, const char *const *options)
{
	cr_assert(eq(int, mkdir("folder", 0700), 0));
	cr_assert(parse_options(outputs, options));
	cr_assert(eq(int, outputs_open(outputs, NULL), EXIT_OK));
	cr_assert(eq(int, output_file_begin_growing(&outputs->list[0].file, NULL), 0));
	cr_assert(eq(int, (int)write(fileno(outputs->list[0].file.stream), "new", 3), 3));
	return &outputs->list[0].file;
}

/*
 * While its folder is missing or the name is taken, the file keeps growing; it gets the name
 * later.
 */
Test(outputs, failed_rename_is_retried)
{
	static const char *const options[] = {"o:folder/a.pysample", NULL};

	for (int at_end = 0; at_end < 2; at_end++) {
		struct outputs outputs;
		struct output_file *file = begin_in_folder(&outputs, options);
		char text[8] = "";
		int fd;

		cr_assert(eq(int, rmdir("folder"), 0));
		cr_expect(eq(int, output_file_publish(file, NULL), -ENOENT));
		cr_expect(eq(int, output_file_publish(file, NULL), -ENOENT));
		cr_assert(eq(int, mkdir("folder", 0700), 0));
		cr_assert(eq(int, mkdir("folder/a.pysample", 0700), 0));
		cr_expect(eq(int, output_file_publish(file, NULL), -EISDIR));
		cr_assert(eq(int, (int)write(fileno(file->stream), "er", 2), 2));
		cr_assert(eq(int, rmdir("folder/a.pysample"), 0));
		if (!at_end)
			cr_expect(eq(int, output_file_publish(file, NULL), 0));
		cr_expect(eq(int, output_file_finish(file, 0, NULL), 0));
		fd = open("folder/a.pysample", O_RDONLY);
		cr_assert(read(fd, text, sizeof(text)) > 0);
		cr_expect(eq(str, (char *)text, (char *)"newer"));
		cr_expect(eq(int, close(fd), 0));
		cr_expect(eq(int, unlink("folder/a.pysample"), 0));
		cr_expect(eq(int, rmdir("folder"), 0)); /* the folder is empty */
		outputs_discard(&outputs);
	}
}

/*
 * A file that never gets its name keeps its temporary one, which the message names, or is lost,
 * which the message says.
 */
Test(outputs, failed_rename_reports_where_the_file_is)
{
	static const char *const options[] = {"o:folder/a.pysample", NULL};
	struct outputs outputs;
	struct output_file *file = begin_in_folder(&outputs, options);
	struct message message = {0};
	const char *name;

	cr_assert(eq(int, mkdir("folder/a.pysample", 0700), 0));
	cr_expect(eq(int, output_file_publish(file, NULL), -EISDIR));
	cr_expect(eq(int, output_file_finish(file, 0, &message), -EISDIR));
	name = strstr(message.text, "folder/.pysample-");
	cr_assert(name && strstr(message.text, "what was written is in"), "%s", message.text);
	cr_expect(eq(int, unlink(name), 0));
	cr_expect(eq(int, rmdir("folder/a.pysample"), 0));
	cr_expect(eq(int, rmdir("folder"), 0));
	outputs_discard(&outputs);

	file = begin_in_folder(&outputs, options);
	cr_assert(eq(int, rmdir("folder"), 0));
	cr_expect(eq(int, output_file_finish(file, 0, &message), -ENOENT));
	cr_expect(strstr(message.text, "what was written is lost") != NULL, "%s", message.text);
	outputs_discard(&outputs);
}

/* Replace the file as a user in no other group. */
static int replace_as(uid_t user)
{
	struct output_file file = {0};
	struct message message = {0};
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (setgroups(0, NULL) || setgid(user) || setuid(user) ||
		    output_file_open("b.collapsed", &file, &message) ||
		    output_file_begin(&file, &message) || output_file_finish(&file, 0, &message))
			_exit(1);
		_exit(0);
	}
	cr_assert(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

/* If the group cannot be kept, the new file's group may do no more than others may. */
Test(outputs, lost_group_gains_no_rights)
{
	enum { USER = 54321, GROUP = 54322 };
	static const struct {
		gid_t group;
		mode_t before, after;
	} cases[] = {
		{GROUP, 0660, 0600}, {GROUP, 0640, 0600}, {GROUP, 0644, 0644}, {GROUP, 0664, 0644},
		{GROUP, 0606, 0606}, {GROUP, 0755, 0755}, {USER, 0660, 0660},  {USER, 0640, 0640},
	};

	if (geteuid() != 0)
		cr_skip_test("only root can make a file of a group that it is not in");
	cr_assert(eq(int, chmod(".", 0777), 0));
	for (size_t i = 0; i < NR(cases); i++) {
		struct stat before, after;
		int fd = open("b.collapsed", O_CREAT | O_EXCL | O_WRONLY, 0600);

		cr_assert(fchown(fd, USER, cases[i].group) == 0 &&
			  fchmod(fd, cases[i].before) == 0 && fstat(fd, &before) == 0);
		cr_expect(eq(int, replace_as(USER), 0), "case %zu", i);
		cr_assert(eq(int, stat("b.collapsed", &after), 0));
		cr_expect(after.st_ino != before.st_ino);
		cr_expect(eq(int, after.st_mode & 0777, cases[i].after), "case %zu", i);
		cr_expect(eq(int, after.st_gid, USER), "case %zu", i);
		cr_assert(eq(int, close(fd), 0));
		cr_assert(eq(int, unlink("b.collapsed"), 0));
	}
}

Test(outputs, fifo_cannot_be_reopened)
{
	struct output_file file = {0};
	int fd;

	cr_assert(eq(int, mkfifo("fifo", 0600), 0));
	fd = open("fifo", O_RDONLY | O_NONBLOCK);
	cr_assert(eq(int, output_file_open("fifo", &file, NULL), 0));
	cr_assert(eq(int, output_file_begin_growing(&file, NULL), 0));
	cr_expect(lt(int, output_file_reopen(&file), 0));
	output_file_discard(&file);
	cr_expect(eq(int, close(fd), 0));
}

static int write_word(const struct artefact *artefact, FILE *out)
{
	(void)artefact;
	return fputs("word", out) < 0 ? -EIO : 0;
}

static void expect_contents(const char *name, const char *expected)
{
	char text[16] = {0};
	FILE *file = fopen(name, "r");

	cr_assert(file != NULL, "%s", name);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	cr_expect(eq(str, (char *)text, (char *)expected), "%s", name);
	cr_expect(eq(int, fclose(file), 0));
}

/*
 * Outputs that are replaced as a whole can be written during the run and again at the end,
 * whether or not the first write is kept.
 */
Test(outputs, replaceable_outputs_can_be_written_twice)
{
	static const char *const options[] = {"o:b.collapsed", "o:fifo", "o:-",
					      "o:a.pysample",  "o:link", NULL};
	const struct format word = {.name = "word", .write = write_word};
	const struct profile_options asked = {0};
	struct artefact artefact = {.profile = profile_create(&asked)};
	struct outputs outputs, again;
	int fd;

	cr_assert(eq(int, mkfifo("fifo", 0600), 0));
	fd = open("fifo", O_RDONLY | O_NONBLOCK);
	cr_assert(eq(int, symlink("c.summary", "link"), 0));
	cr_assert(parse_options(&outputs, options));
	cr_assert(eq(int, outputs_open(&outputs, NULL), EXIT_OK));
	for (int time = 0; time < 2; time++) {
		cr_assert(eq(int, outputs_open_again(&outputs, &again), 0));
		cr_assert(eq(uint, again.nr, 2));
		again.list[1].format = &word;
		cr_expect(eq(int, outputs_write(&again, &artefact, &asked), EXIT_OK));
		cr_expect(zero(ptr, (void *)outputs_next(&again)));
		outputs_discard(&again);
		expect_contents("c.summary", "word");
		expect_contents("b.collapsed", "");
		cr_expect(eq(int, unlink("c.summary"), 0));
	}
	/* Discarding the second set changes nothing. */
	cr_assert(eq(int, outputs_open_again(&outputs, &again), 0));
	outputs_discard(&again);
	cr_expect(eq(int, access("c.summary", F_OK), -1));
	outputs.list[4].format = &word;
	cr_expect(eq(int, outputs_write(&outputs, &artefact, &asked), EXIT_OK));
	expect_contents("c.summary", "word");
	outputs_discard(&outputs);
	profile_destroy((struct profile *)artefact.profile);
	cr_expect(eq(int, close(fd), 0));
}

Test(outputs, stdout_can_be_deferred)
{
	static const char *const options[] = {"o:b.collapsed", "o:-", NULL};
	const struct profile_options asked = {0};
	struct artefact artefact = {.profile = profile_create(&asked)};
	struct outputs outputs;

	cr_assert(parse_options(&outputs, options));
	cr_assert(eq(int, outputs_open(&outputs, NULL), EXIT_OK));
	outputs.defers_stdout = true;
	cr_expect(eq(int, outputs_write(&outputs, &artefact, &asked), EXIT_OK));
	cr_expect(outputs.list[0].is_written);
	cr_expect(not(outputs.list[1].is_written));
	cr_expect(zero(ptr, (void *)outputs_next(&outputs)));
	outputs_skip(&outputs, &asked, &asked);
	outputs.defers_stdout = false;
	cr_expect(eq(ptr, (void *)outputs_next(&outputs), (void *)&outputs.list[1]));
	cr_expect(eq(int, outputs_write(&outputs, &artefact, &asked), EXIT_OK));
	cr_expect(zero(ptr, (void *)outputs_next(&outputs)));
	outputs_discard(&outputs);
	profile_destroy((struct profile *)artefact.profile);
}
