// SPDX-License-Identifier: Apache-2.0
/* Runs a script by libphp: embed SCRIPT ARGUMENTS. */
#include <sapi/embed/php_embed.h>

int main(int argc, char **argv)
{
	zend_file_handle file;

	php_embed_init(argc - 1, argv + 1);
	zend_first_try
	{
		zend_stream_init_filename(&file, argv[1]);
		php_execute_script(&file);
	}
	zend_end_try();
	php_embed_shutdown();
	return 0;
}
