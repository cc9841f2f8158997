/* SPDX-License-Identifier: MIT */
#include "output/profile/plumbing.h"

#include <stdlib.h>
#include <string.h>

/*
 * Sorted. Functions that a program calls by name, such as builtin_exec(), or by an operator are
 * not listed.
 *
 * Source: CPython 3.6 to 3.15, Modules/main.c, Python/pythonrun.c, Objects/call.c,
 * Objects/methodobject.c, Objects/descrobject.c, Objects/classobject.c, Python/ceval.c,
 * Python/thread_pthread.h, Modules/_threadmodule.c; the C libraries' files that start a process
 * and a thread.
 */
static const char *const names[] = {
	"PyCFunction_Call",
	"PyEval_EvalCode",
	"PyEval_EvalCodeEx",
	"PyEval_EvalFrame",
	"PyEval_EvalFrameEx",
	"PyObject_Call",
	"PyObject_CallFunction",
	"PyObject_CallFunctionObjArgs",
	"PyObject_CallMethod",
	"PyObject_CallMethodObjArgs",
	"PyObject_CallMethodOneArg",
	"PyObject_CallNoArgs",
	"PyObject_CallObject",
	"PyObject_CallOneArg",
	"PyObject_Vectorcall",
	"PyObject_VectorcallDict",
	"PyObject_VectorcallMethod",
	"PyRun_AnyFileExFlags",
	"PyRun_FileExFlags",
	"PyRun_SimpleFileExFlags",
	"PyRun_SimpleStringFlags",
	"PyRun_StringFlags",
	"PyVectorcall_Call",
	"Py_BytesMain",
	"Py_Main",
	"Py_RunMain",
	"_PyCFunction_FastCallDict",
	"_PyCFunction_FastCallKeywords",
	"_PyCallMethodDescriptorFastWithKeywords_StackRef",
	"_PyCallMethodDescriptorFast_StackRef",
	"_PyEval_EvalCode",
	"_PyEval_EvalCodeWithName",
	"_PyEval_EvalFrame",
	"_PyEval_Vector",
	"_PyFunction_FastCall",
	"_PyFunction_FastCallDict",
	"_PyFunction_FastCallKeywords",
	"_PyFunction_Vectorcall",
	"_PyMethodDef_RawFastCallDict",
	"_PyMethodDef_RawFastCallKeywords",
	"_PyMethodDescr_FastCallKeywords",
	"_PyObject_Call",
	"_PyObject_CallFunctionVa",
	"_PyObject_CallFunction_SizeT",
	"_PyObject_CallMethod",
	"_PyObject_CallMethodFormat",
	"_PyObject_CallMethodId",
	"_PyObject_CallMethodIdObjArgs",
	"_PyObject_CallMethodId_SizeT",
	"_PyObject_CallMethod_SizeT",
	"_PyObject_CallNoArgs",
	"_PyObject_Call_Prepend",
	"_PyObject_FastCall",
	"_PyObject_FastCallDict",
	"_PyObject_FastCallDictTstate",
	"_PyObject_FastCallKeywords",
	"_PyObject_FastCall_Prepend",
	"_PyObject_MakeTpCall",
	"_PyObject_Vectorcall",
	"_PyObject_VectorcallDictTstate",
	"_PyObject_VectorcallMethodId",
	"_PyObject_VectorcallTstate",
	"_PyRun_AnyFileObject",
	"_PyRun_SimpleFile",
	"_PyRun_SimpleFileObject",
	"_PyRun_SimpleStringFlagsWithName",
	"_PyVectorcall_Call",
	"_Py_BuiltinCallFastWithKeywords_StackRef",
	"_Py_BuiltinCallFast_StackRef",
	"_Py_CallBuiltinClass_StackRef",
	"_Py_VectorCallInstrumentation_StackRefSteal",
	"_Py_VectorCall_StackRefSteal",
	"__GI___clone",
	"__GI___clone3",
	"__clone",
	"__clone3",
	"__libc_start_call_main",
	"__libc_start_main",
	"__libc_start_main_impl",
	"_start",
	"call_function",
	"cfunction_call",
	"cfunction_call_varargs",
	"cfunction_vectorcall_FASTCALL",
	"cfunction_vectorcall_FASTCALL_KEYWORDS",
	"cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
	"cfunction_vectorcall_NOARGS",
	"cfunction_vectorcall_O",
	"classmethoddescr_call",
	"clone",
	"clone3",
	"do_call_core",
	"function_call",
	"function_code_fastcall",
	"instancemethod_call",
	"main",
	"method_call",
	"method_vectorcall",
	"method_vectorcall_FASTCALL",
	"method_vectorcall_FASTCALL_KEYWORDS",
	"method_vectorcall_FASTCALL_KEYWORDS_METHOD",
	"method_vectorcall_NOARGS",
	"method_vectorcall_O",
	"method_vectorcall_VARARGS",
	"method_vectorcall_VARARGS_KEYWORDS",
	"methoddescr_call",
	"object_vacall",
	"pymain_main",
	"pymain_run_command",
	"pymain_run_file",
	"pymain_run_file_obj",
	"pymain_run_module",
	"pymain_run_python",
	"pymain_run_startup",
	"pymain_run_stdin",
	"pyrun_file",
	"pyrun_simple_file",
	"pythread_wrapper",
	"run_eval_code_obj",
	"run_file",
	"run_mod",
	"start_thread",
	"t_bootstrap",
	"thread_run",
	"vectorcall_maybe",
	"vectorcall_method",
	"vectorcall_unbound",
};

/* Longer than any of them. */
enum { NAME_MAX_BYTES = 64 };

static int compare(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

static bool begins_with_one(const char *text, const char *const *prefixes, size_t nr_prefixes)
{
	for (size_t i = 0; i < nr_prefixes; i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/*
 * Whether a listed name can only be CPython's or the C library's. Such a name counts in
 * any file, because CPython may be linked into a program.
 */
static bool is_reserved(const char *name)
{
	static const char *const prefixes[] = {"Py", "_Py", "_start", "__libc_start"};

	return begins_with_one(name, prefixes, sizeof(prefixes) / sizeof(*prefixes));
}

/* Whether a file is CPython itself or a C library. */
static bool is_home(const char *path)
{
	static const char *const prefixes[] = {"python", "libpython",  "libc.",
					       "libc-",	 "libpthread", "ld-musl"};
	const char *slash = strrchr(path, '/');

	return begins_with_one(slash ? slash + 1 : path, prefixes,
			       sizeof(prefixes) / sizeof(*prefixes));
}

bool plumbing_is(const struct function *function)
{
	/* Compilers clone functions: "run_mod.constprop.0", "call_function.cold". */
	const size_t length = strcspn(function->qualname, ".");
	char name[NAME_MAX_BYTES];

	if (function->kind != FUNCTION_NATIVE || length >= sizeof(name))
		return false;
	memcpy(name, function->qualname, length);
	name[length] = '\0';
	return bsearch(name, names, sizeof(names) / sizeof(*names), sizeof(*names), compare) &&
	       (is_reserved(name) || is_home(function->path));
}
