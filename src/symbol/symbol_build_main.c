// SPDX-License-Identifier: Apache-2.0
/* For tests: a program that is nothing but the builder, as `sonde build-symbols` is. */
#include "symbol/symbol_store.h"

int main(int argc, char **argv)
{
	return symbol_store_builder_main(argc, argv);
}
