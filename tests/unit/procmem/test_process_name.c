/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/machine_offers.h"

/* The arguments are separated by '|', which becomes NUL. */
struct row {
	const char *arguments;
	const char *name;
};

static const struct row options[] = {
	{"python3|", "python3"},
	{"/usr/bin/python3.13t|-V|", "python3.13t"},
	{"python3|-W|error|-X|dev|script.py|--password|x|", "python3 script.py"},
	{"python3|-Werror|-Xdev|-uB|/srv/job.py|secret|", "python3 job.py"},
	{"python3|--check-hash-based-pycs|always|-I|a/b/job.py|", "python3 job.py"},
	{"python3|-bW|error|job.py|", "python3 job.py"},
	{"python3|-uX|importtime|job.py|", "python3 job.py"},
	{"python3|--|-job.py|secret|", "python3 -job.py"},
	{"python3|-W|", "python3"},
	{"python3|--|", "python3"},
	{"python|-|secret|", "python -"},
	{"python|-c|print('secret')|secret|", "python -c"},
	{"python|-cprint('secret')|secret|", "python -c"},
	{"python|-Ic|secret|", "python -c"},
	{"python|-c|", "python -c"},
	{"python3-dbg|job.py|", "python3-dbg job.py"},
	{"-python3|job.py|", "python3 job.py"},
};

static const struct row modules[] = {
	{"python|-m|http.server|80|", "python -m http.server"},
	{"python|-Im|mod|secret|", "python -m mod"},
	{"python|-uBm|mod|secret|", "python -m mod"},
	{"python|-mmod.sub|secret|", "python -m mod.sub"},
	{"python|-m|", "python -m"},
	{"python|-m|not a module|", "python -m"},
	{"python|-m|gunicorn|app:wsgi|", "python -m gunicorn app:wsgi"},
	{"python|-m|uvicorn|--port|80|app.main:make()|x|", "python -m uvicorn app.main:make()"},
	{"python|-m|celery|-A|proj.tasks|worker|", "python -m celery -A proj.tasks"},
	{"python|-m|pytest|user:secret|", "python -m pytest"},
};

static const struct row scripts[] = {
	{"/usr/bin/python3|/usr/bin/gunicorn|app:wsgi|", "gunicorn app:wsgi"},
	{"python3|/usr/bin/gunicorn|-w|4|-b|host:http|shop.wsgi:app|x:y|",
	 "gunicorn shop.wsgi:app"},
	{"python3|/usr/bin/gunicorn|-w4|app:wsgi|", "gunicorn app:wsgi"},
	{"python3|/usr/bin/gunicorn|--reload|app:wsgi|", "gunicorn app:wsgi"},
	{"python3|/usr/bin/gunicorn|--auth|user:secret|", "gunicorn"},
	{"python3|/usr/bin/gunicorn|--auth|user:secret|app:wsgi|", "gunicorn app:wsgi"},
	{"python3|/usr/bin/gunicorn|app|", "gunicorn"},
	{"python3|/usr/bin/gunicorn|app:make('secret')|", "gunicorn"},
	{"python3|/usr/bin/gunicorn|app:|a:b c|1a:b|a:1|a-b:c|", "gunicorn"},
	{"python3|/usr/bin/waitress-serve|--port=80|app:wsgi|", "waitress-serve app:wsgi"},
	{"python3|/usr/bin/celery|-b|amqp://u:secret@h|-A|proj|worker|", "celery -A proj"},
	{"python3|/usr/bin/celery|--app=proj:app|worker|", "celery -A proj:app"},
	{"python3|/usr/bin/celery|-Aproj|worker|", "celery -A proj"},
	{"python3|/usr/bin/celery|-A|", "celery"},
	{"python3|/usr/bin/celery|-A|not/a module|", "celery"},
	{"python3|/usr/bin/flask|--app|hello|run|", "flask -A hello"},
	{"python3|/usr/local/bin/tool|user:secret|", "tool"},
	{"python3|./tool|", "tool"},
	{"python3|tool|", "python3 tool"},
	{"python3|/a/b/|", "b"},
	{"python3|.|", "python3 ."},
	{"python3|/|", "/"},
	{"python3|x.pyz|", "python3 x.pyz"},
	{"python3|/opt/x.zip|", "python3 x.zip"},
	{"python3|app/__main__.py|", "python3 app/__main__.py"},
	{"python3|/srv/app/__main__.py|secret|", "python3 app/__main__.py"},
	{"python3|shop/manage.py|runserver|", "python3 shop/manage.py"},
	{"python3|./manage.py|runserver|", "python3 ./manage.py"},
	{"python3|/manage.py|runserver|", "python3 manage.py"},
	{"python3|manage.py|runserver|", "python3 manage.py"},
};

static const struct row children[] = {
	{"/usr/bin/python3|-c|from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)|"
	 "--multiprocessing-fork|",
	 "python3 (multiprocessing spawn)"},
	{"python3|-Bc|from multiprocessing.forkserver import main; main(8, 9, ['x'])|",
	 "python3 (multiprocessing forkserver)"},
	{"python3|-c|import sys; from multiprocessing.forkserver import main; main(8, 9)|",
	 "python3 (multiprocessing forkserver)"},
	{"python3|-c|import sys; print('secret')|", "python3 -c"},
	{"python3|-c|from multiprocessing.resource_tracker import main;main(4)|",
	 "python3 (multiprocessing resource_tracker)"},
	{"python3|-c|from multiprocessing.semaphore_tracker import main;main(4)|",
	 "python3 (multiprocessing semaphore_tracker)"},
	{"python3|-c|from multiprocessing.secret import x|", "python3 -c"},
};

static const struct row titles[] = {
	{"gunicorn: worker [app:wsgi]|", "gunicorn: worker [app:wsgi]"},
	{"gunicorn: worker [app:wsgi]   |||||", "gunicorn: worker [app:wsgi]"},
	{"gunicorn: master [app:wsgi]|/usr/bin/x|--password|", "gunicorn: master [app:wsgi]"},
	{"[celeryd: c@host:MainProcess] -active- (-A app --password x)|",
	 "[celeryd: c@host:MainProcess]"},
	{"worker: amqp://u:secret@host/|", "worker:"},
	{"worker: password=secret|", "worker:"},
	{"nginx: master process /usr/sbin/nginx -g x|", "nginx: master process"},
	{"my worker secret|", "my"},
	{"worker http://u:p@h/secret|", "worker"},
	{"/bin/x --url http://u:p@h/secret|", "x"},
	{"/bin/x --key k/secret|", "x"},
	{"/opt/my app/bin/python3|job.py|", "python3 job.py"},
	{"uWSGI worker 1|", "uWSGI"},
};

static const struct row programs[] = {
	{"/usr/bin/uwsgi|--ini|secret.ini|", "uwsgi"},
	{"uwsgi|", "uwsgi"},
	{"/usr/sbin/nginx|-g|daemon off;|", "nginx"},
	{"-bash|", "bash"},
	{"-|", "-"},
	{"gunicorn|app:wsgi|", "gunicorn"}, /* no Python that runs a script */
	{"pythonista|secret|", "pythonista"},
	{"python-config|secret|", "python-config"},
};

static const struct row hostile[] = {
	{"", ""},
	{"|", ""},
	{"||||||||", ""},
	{"|secret|", ""},
	{" |", ""},
	{": x|", ":"},
	{"/", "/"},
	{"//|", "/"},
	{"python3", "python3"},
	{"python3|job.py", "python3 job.py"},
	{"python3|-m|mod", "python3 -m mod"},
	{"python3||", "python3"},
	{"python3|\xff\xfe.py|", "python3 \xff\xfe.py"},
	{"python3|a\nb.py|", "python3 a\nb.py"},
};

/* The bytes are on the heap, and end where the arguments do, so that sanitizers see more. */
static void check(const struct row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const size_t length = strlen(rows[i].arguments);
		char *bytes = malloc(length + !length);
		char name[PROCESS_NAME_MAX_BYTES];

		cr_assert(ne(ptr, bytes, NULL));
		for (size_t at = 0; at < length; at++)
			bytes[at] = rows[i].arguments[at] == '|' ? '\0' : rows[i].arguments[at];
		process_name_format(bytes, length, name);
		cr_expect(eq(str, name, (char *)rows[i].name), "%s", rows[i].arguments);
		free(bytes);
	}
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof(*(rows)))

Test(process_name, skips_options_of_python)
{
	CHECK(options);
}

Test(process_name, shows_modules)
{
	CHECK(modules);
}

Test(process_name, shows_scripts_and_applications)
{
	CHECK(scripts);
}

Test(process_name, recognises_multiprocessing)
{
	CHECK(children);
}

Test(process_name, cuts_titles_before_arguments)
{
	CHECK(titles);
}

Test(process_name, shows_the_program_only_of_others)
{
	CHECK(programs);
}

Test(process_name, accepts_any_bytes)
{
	CHECK(hostile);
}

Test(process_name, cuts_between_characters)
{
	enum { MANY_BYTES = 1 << 20 };
	char *bytes = malloc(MANY_BYTES);
	char name[PROCESS_NAME_MAX_BYTES];

	cr_assert(ne(ptr, bytes, NULL));
	memset(bytes, 'x', MANY_BYTES);
	process_name_format(bytes, MANY_BYTES, name);
	cr_expect(eq(sz, strlen(name), PROCESS_NAME_MAX_BYTES - 1));
	/* A character of three bytes, of which two have room. */
	memcpy(bytes + PROCESS_NAME_MAX_BYTES - 3, "\u20ac", 3);
	process_name_format(bytes, MANY_BYTES, name);
	cr_expect(eq(sz, strlen(name), PROCESS_NAME_MAX_BYTES - 3));
	memset(bytes, '\0', MANY_BYTES);
	process_name_format(bytes, MANY_BYTES, name);
	cr_expect(eq(str, name, (char *)""));
	free(bytes);
}

Test(process_name, is_read_from_a_process)
{
	struct process process;
	char name[PROCESS_NAME_MAX_BYTES];
	char byte = 'x';
	int in[2], out[2];

	cr_assert(zero(int, pipe(in)));
	cr_assert(zero(int, pipe(out)));
	const pid_t pid = fork();

	cr_assert(ge(int, pid, 0));
	if (pid == 0) {
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)close(in[1]);
		(void)execlp("cat", "/opt/python3", "-", "/dev/null", (char *)NULL);
		_exit(1);
	}
	/* What comes back has passed the exec. */
	cr_assert(eq(sz, (size_t)write(in[1], &byte, 1), 1));
	(void)close(out[1]);
	cr_assert(eq(sz, (size_t)read(out[0], &byte, 1), 1));
	cr_assert(zero(int, process_open(pid, &process, NULL)));
	process_name_read(&process, name);
	process_close(&process);
	(void)close(in[1]);
	cr_assert(eq(int, waitpid(pid, NULL, 0), pid));
	cr_expect(eq(str, name, (char *)"python3 -"));
}

Test(process_name, of_a_zombie_is_what_the_kernel_calls_it)
{
	struct process process;
	char name[PROCESS_NAME_MAX_BYTES];
	siginfo_t info;
	pid_t pid;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	pid = fork();
	cr_assert(ge(int, pid, 0));
	if (pid == 0)
		_exit(0);
	cr_assert(zero(int, waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)));
	cr_assert(zero(int, process_open(pid, &process, NULL)));
	process_name_read(&process, name);
	cr_expect(eq(str, name, (char *)"test_process_na")); /* comm has 15 bytes */
	cr_assert(eq(int, waitpid(pid, NULL, 0), pid));
	process_name_read(&process, name);
	process_close(&process);
	cr_expect(eq(str, name, (char *)""));
}
