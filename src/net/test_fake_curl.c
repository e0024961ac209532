// SPDX-License-Identifier: Apache-2.0
/* A libcurl for http_test.c, of a version that does not know all options; it sends nothing. */
#include "net/test_fake_curl.h"

#include <stdarg.h>
#include <stdlib.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo

CURLoption fake_curl_unknown[FAKE_CURL_UNKNOWN_MAX];
long fake_curl_protocols;

CURLcode curl_global_init(long flags)
{
	(void)flags;
	return CURLE_OK;
}

CURL *curl_easy_init(void)
{
	return calloc(1, 1);
}

void curl_easy_cleanup(CURL *easy)
{
	free(easy);
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	va_list args;

	(void)easy;
	for (size_t i = 0; i < FAKE_CURL_UNKNOWN_MAX; i++)
		if (option == fake_curl_unknown[i])
			return CURLE_UNKNOWN_OPTION;
	va_start(args, option);
	if (option == CURLOPT_PROTOCOLS)
		fake_curl_protocols = va_arg(args, long);
	va_end(args);
	return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	(void)easy, (void)info;
	return CURLE_OK;
}

const char *curl_easy_strerror(CURLcode code)
{
	(void)code;
	return "unknown option";
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *line)
{
	struct curl_slist *first = calloc(1, sizeof(*first));

	(void)line;
	if (first)
		first->next = list;
	return first;
}

void curl_slist_free_all(struct curl_slist *list)
{
	while (list) {
		struct curl_slist *next = list->next;

		free(list);
		list = next;
	}
}

CURLM *curl_multi_init(void)
{
	return calloc(1, 1);
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
	free(multi);
	return CURLM_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	(void)multi, (void)easy;
	return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	(void)multi, (void)easy;
	return CURLM_OK;
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = 0;
	return CURLM_OK;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd fds[], unsigned nr, int ms, int *ret)
{
	(void)multi, (void)fds, (void)nr, (void)ms, (void)ret;
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	(void)multi;
	*left = 0;
	return NULL;
}
