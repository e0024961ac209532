/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FUZZER(data, size) { ... }: what is done with one input; it returns 0. A fuzzer is a file of it,
 * fuzz_NAME.c. libFuzzer has a program of each; else fuzz_main.c has them all.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef WITH_LIBFUZZER
#define FUZZER(data_, size_)                                                                       \
	int LLVMFuzzerTestOneInput(const uint8_t *data_, size_t size_);                            \
	int LLVMFuzzerTestOneInput(const uint8_t *data_, size_t size_)
#else
struct fuzzer {
	const char *file;
	int (*run)(const uint8_t *data, size_t size);
	struct fuzzer *next;
};

void fuzzer_register(struct fuzzer *fuzzer);

#define FUZZER(data_, size_)                                                                       \
	static int fuzzer_run_(const uint8_t *data_, size_t size_);                                \
	static struct fuzzer fuzzer_ = { __BASE_FILE__, fuzzer_run_, NULL };                       \
	__attribute__((constructor)) static void fuzzer_register_(void)                            \
	{                                                                                          \
		fuzzer_register(&fuzzer_);                                                         \
	}                                                                                          \
	static int fuzzer_run_(const uint8_t *data_, size_t size_)
#endif
