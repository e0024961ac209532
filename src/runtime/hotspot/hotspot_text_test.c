// SPDX-License-Identifier: Apache-2.0
/* How what the JVM calls a class or a blob is written. */
#include "runtime/hotspot/hotspot_names.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

static void check_class(const char *in, const char *out)
{
	char name[100];

	snprintf(name, sizeof(name), "%s", in);
	ASSERT_EQ(hotspot_class_name(name), strlen(out));
	ASSERT_STR(name, out);
}

TEST(names_of_classes)
{
	check_class("Main", "Main");
	check_class("java/util/HashMap$Node", "java.util.HashMap$Node");
	check_class("Main$$Lambda$14+0x0000000800c03000", "Main$$Lambda");
	check_class("a/Main$$Lambda+0x00007f2b40001a28", "a.Main$$Lambda");
	check_class("Main$$Lambda$1", "Main$$Lambda");
	check_class("java/lang/invoke/LambdaForm$MH+0x0000000800c5400",
		    "java.lang.invoke.LambdaForm$MH");
	check_class("a/Hidden$1+0x1", "a.Hidden$1");
	/* These are somebody's own. */
	check_class("Main$$Lambda$Inner", "Main$$Lambda$Inner");
	check_class("Main$$Lambda$", "Main$$Lambda$");
	check_class("Main$$Lambda$14$2", "Main$$Lambda$14$2");
	check_class("a/C+", "a.C+");
	check_class("a/C+0x", "a.C+0x");
	check_class("a/C+0xg", "a.C+0xg");
	check_class("a/C+1", "a.C+1");
	check_class("+0x1", "+0x1");
	check_class("", "");
}

static void check_blob(const char *in, const char *out)
{
	char name[100], small[8];

	ASSERT_EQ(hotspot_blob_name(in, name, sizeof(name)), strlen(out));
	ASSERT_STR(name, out);
	hotspot_blob_name(in, small, sizeof(small));
	ASSERT(strlen(small) < sizeof(small) && !strncmp(small, out, strlen(small)));
}

TEST(names_of_blobs)
{
	check_blob("vtable chunks", "vtable stub");
	check_blob("Interpreter", "Interpreter");
	check_blob("I2C/C2I adapters", "I2C/C2I adapters");
	check_blob("DeoptimizationBlob", "DeoptimizationBlob");
	check_blob("StubRoutines (2)", "StubRoutines (2)");
	check_blob("_new_array_Java", "RuntimeStub::_new_array_Java");
	check_blob("resolve_static_call", "RuntimeStub::resolve_static_call");
	check_blob("C2 Runtime new_array_blob", "RuntimeStub::C2 Runtime new_array_blob");
	check_blob("native signature handlers", "native signature handlers");
	check_blob("upcall_stub", "upcall_stub");
	check_blob("", "");
}
