// SPDX-License-Identifier: Apache-2.0
/* An extension of thread-safe PHPs: in_threads(SCRIPT, FOLDER, CASE...) runs the script in a thread
 * for each case, as servers do that have a thread for each request. */
#include "php.h"

#include <pthread.h>
#include <stdlib.h>

#include "SAPI.h"
#include "php_main.h"

enum { THREADS_MAX = 16 };

static char *script, *folder;

static void *run_case(void *arg)
{
	char *argv[] = { script, arg, folder, NULL };
	zend_file_handle file;

	ts_resource(0);
	SG(request_info).argc = 3;
	SG(request_info).argv = argv;
	if (php_request_startup() == FAILURE)
		exit(1);
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
#if PHP_VERSION_ID >= 80100
	zend_stream_init_filename(&file, script);
#else
	memset(&file, 0, sizeof(file));
	file.type = ZEND_HANDLE_FILENAME;
	file.filename = script;
#endif
	zend_first_try
	{
		php_execute_script(&file);
	}
	zend_end_try();
	php_request_shutdown(NULL);
	ts_free_thread();
	return NULL;
}

ZEND_BEGIN_ARG_INFO_EX(arguments, 0, 0, 3)
ZEND_ARG_VARIADIC_INFO(0, strings)
ZEND_END_ARG_INFO()

static ZEND_FUNCTION(in_threads)
{
	pthread_t threads[THREADS_MAX];
	zval *args;
	int nr, i;

	if (zend_parse_parameters(ZEND_NUM_ARGS(), "+", &args, &nr) == FAILURE || nr < 3 ||
	    nr > THREADS_MAX)
		return;
	script = Z_STRVAL(args[0]);
	folder = Z_STRVAL(args[1]);
	for (i = 2; i < nr; i++)
		if (pthread_create(&threads[i], NULL, run_case, Z_STRVAL(args[i])))
			exit(1);
	for (i = 2; i < nr; i++)
		pthread_join(threads[i], NULL);
}

static const zend_function_entry functions[] = { ZEND_FE(in_threads, arguments) ZEND_FE_END };

zend_module_entry threads_module_entry = {
	STANDARD_MODULE_HEADER,	   "threads", functions, NULL, NULL, NULL, NULL, NULL, "1",
	STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(threads)
