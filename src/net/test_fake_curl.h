/* SPDX-License-Identifier: Apache-2.0 */
/* What a test tells test_fake_curl.c, and is told by it. */
#pragma once

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

enum { FAKE_CURL_UNKNOWN_MAX = 4 };

extern CURLoption fake_curl_unknown[FAKE_CURL_UNKNOWN_MAX];
extern long fake_curl_protocols; /* CURLOPT_PROTOCOLS; 0: was not set */
