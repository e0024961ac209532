// SPDX-License-Identifier: Apache-2.0
/*
 * The vectors are symbols of Swift 6.0 programs and libraries, the full names what its own
 * swift-demangle says of them.
 */
#include "symbol/demangle.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/cleanup.h"

struct vector {
	const char *mangled, *full, *brief;
};

static const struct vector vectors[] = {
	{ "$S4main3fooyyF", "main.foo() -> ()", "main.foo" },
	{ "$s4main009gre_GkaIiyS2iF", "main.größe(Swift.Int) -> Swift.Int", "main.größe" },
	{ "$s4main13swiftFunctionyySo9CxxStructVF", "main.swiftFunction(__C.CxxStruct) -> ()",
	  "main.swiftFunction" },
	{ "$s4main1CC1xACSi_tcfC", "main.C.__allocating_init(x: Swift.Int) -> main.C",
	  "main.C.__allocating_init" },
	{ "$s4main1CC1xACSi_tcfc", "main.C.init(x: Swift.Int) -> main.C", "main.C.init" },
	{ "$s4main1CCfD", "main.C.__deallocating_deinit", "main.C.__deallocating_deinit" },
	{ "$s4main1CCfd", "main.C.deinit", "main.C.deinit" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLO11stri"
	  "ngValueAFSgSS_tcfC",
	  "main.K.(CodingKeys in _E7E349115D975640A7258DA78D3043F5).init(stri"
	  "ngValue: Swift.String) -> main.K.(CodingKeys in _E7E349115D975640A"
	  "7258DA78D3043F5)?",
	  "main.K.CodingKeys.init" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLO11stri"
	  "ngValueSSvg",
	  "main.K.(CodingKeys in _E7E349115D975640A7258DA78D3043F5).stringVal"
	  "ue.getter : Swift.String",
	  "main.K.CodingKeys.stringValue.getter" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLOAFs23C"
	  "ustomStringConvertibleAAWl",
	  "lazy protocol witness table accessor for type main.K.(CodingKeys i"
	  "n _E7E349115D975640A7258DA78D3043F5) and conformance main.K.(Codin"
	  "gKeys in _E7E349115D975640A7258DA78D3043F5) : Swift.CustomStringCo"
	  "nvertible in main",
	  "lazy protocol witness table accessor for type main.K.CodingKeys an"
	  "d conformance main.K.CodingKeys : Swift.CustomStringConvertible" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLOwet",
	  "getEnumTagSinglePayload value witness for main.K.(CodingKeys in _E"
	  "7E349115D975640A7258DA78D3043F5)",
	  "getEnumTagSinglePayload value witness for main.K.CodingKeys" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLOwst",
	  "storeEnumTagSinglePayload value witness for main.K.(CodingKeys in "
	  "_E7E349115D975640A7258DA78D3043F5)",
	  "storeEnumTagSinglePayload value witness for main.K.CodingKeys" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLOwui",
	  "destructiveInjectEnumTag value witness for main.K.(CodingKeys in _"
	  "E7E349115D975640A7258DA78D3043F5)",
	  "destructiveInjectEnumTag value witness for main.K.CodingKeys" },
	{ "$s4main1KV10CodingKeys33_E7E349115D975640A7258DA78D3043F5LLOwup",
	  "destructiveProjectEnumData value witness for main.K.(CodingKeys in"
	  " _E7E349115D975640A7258DA78D3043F5)",
	  "destructiveProjectEnumData value witness for main.K.CodingKeys" },
	{ "$s4main1KVSLAASQWb",
	  "base witness table accessor for Swift.Equatable in main.K : Swift."
	  "Comparable in main",
	  "base witness table accessor for Swift.Equatable in main.K : Swift."
	  "Comparable" },
	{ "$s4main1KVwCP", "initializeBufferWithCopyOfBuffer value witness for main.K",
	  "initializeBufferWithCopyOfBuffer value witness for main.K" },
	{ "$s4main1KVwca", "assignWithCopy value witness for main.K",
	  "assignWithCopy value witness for main.K" },
	{ "$s4main1KVwcp", "initializeWithCopy value witness for main.K",
	  "initializeWithCopy value witness for main.K" },
	{ "$s4main1KVwet", "getEnumTagSinglePayload value witness for main.K",
	  "getEnumTagSinglePayload value witness for main.K" },
	{ "$s4main1KVwst", "storeEnumTagSinglePayload value witness for main.K",
	  "storeEnumTagSinglePayload value witness for main.K" },
	{ "$s4main1KVwta", "assignWithTake value witness for main.K",
	  "assignWithTake value witness for main.K" },
	{ "$s4main1KVwxx", "destroy value witness for main.K", "destroy value witness for main.K" },
	{ "$s4main1PPAAE3sumSiyFS2i_Sitcfu_",
	  "implicit closure #1 (Swift.Int, Swift.Int) -> Swift.Int in (extens"
	  "ion in main):main.P.sum() -> Swift.Int",
	  "implicit closure #1 in main.P.sum" },
	{ "$s4main1SV1ayS2iFZ", "static main.S.a(Swift.Int) -> Swift.Int", "main.S.a" },
	{ "$s4main1SV1xSivg", "main.S.x.getter : Swift.Int", "main.S.x.getter" },
	{ "$s4main1SV2eeoiySbAC_ACtFZ", "static main.S.== infix(main.S, main.S) -> Swift.Bool",
	  "main.S.== infix" },
	{ "$s4main1SVAA1PA2aDP3baryyFTW",
	  "protocol witness for main.P.bar() -> () in conformance main.S : ma"
	  "in.P in main",
	  "protocol witness for main.P.bar in conformance main.S : main.P" },
	{ "$s4main3baz1aySid_tF", "main.baz(a: Swift.Int...) -> ()", "main.baz" },
	{ "$s4main3bazyySS_Sit_tF", "main.baz((Swift.String, Swift.Int)) -> ()", "main.baz" },
	{ "$s4main3foo1xySi_tFfA_", "default argument 0 of main.foo(x: Swift.Int) -> ()",
	  "default argument 0 of main.foo" },
	{ "$s4main3fooyyF", "main.foo() -> ()", "main.foo" },
	{ "$s4main3fooyyFyycfU0_", "closure #2 () -> () in main.foo() -> ()",
	  "closure #2 in main.foo" },
	{ "$s4main3fooyyFyycfU_TA",
	  "partial apply forwarder for closure #1 () -> () in main.foo() -> ("
	  ")",
	  "partial apply forwarder for closure #1 in main.foo" },
	{ "$s4main3fooyyxSHRzlFSi_Tg5",
	  "generic specialization <Swift.Int> of main.foo<A where A: Swift.Ha"
	  "shable>(A) -> ()",
	  "main.foo" },
	{ "$s4main3runSaySiGyYaKFACScgySis5Error_pGzYaKXEfU_SiyYacfU_TQ0_",
	  "(1) await resume partial function for closure #1 () async -> Swift"
	  ".Int in closure #1 (inout Swift.ThrowingTaskGroup<Swift.Int, Swift"
	  ".Error>) async throws -> [Swift.Int] in main.run() async throws ->"
	  " [Swift.Int]",
	  "(1) await resume partial function for closure #1 in closure #1 in "
	  "main.run" },
	{ "$s4main3runSaySiGyYaKFACScgySis5Error_pGzYaKXEfU_SiyYacfU_TY1_",
	  "(2) suspend resume partial function for closure #1 () async -> Swi"
	  "ft.Int in closure #1 (inout Swift.ThrowingTaskGroup<Swift.Int, Swi"
	  "ft.Error>) async throws -> [Swift.Int] in main.run() async throws "
	  "-> [Swift.Int]",
	  "(2) suspend resume partial function for closure #1 in closure #1 i"
	  "n main.run" },
	{ "$s4main3runSaySiGyYaKFACScgySis5Error_pGzYaKXEfU_SiyYacfU_TY2_",
	  "(3) suspend resume partial function for closure #1 () async -> Swi"
	  "ft.Int in closure #1 (inout Swift.ThrowingTaskGroup<Swift.Int, Swi"
	  "ft.Error>) async throws -> [Swift.Int] in main.run() async throws "
	  "-> [Swift.Int]",
	  "(3) suspend resume partial function for closure #1 in closure #1 i"
	  "n main.run" },
	{ "$s4main3runSaySiGyYaKFTY3_",
	  "(4) suspend resume partial function for main.run() async throws ->"
	  " [Swift.Int]",
	  "(4) suspend resume partial function for main.run" },
	{ "$s4main3sumyxxSTRzlF", "main.sum<A where A: Swift.Sequence>(A) -> A", "main.sum" },
	{ "$s4main4NodeC4nextACyxGSgvpfi",
	  "variable initialization expression of main.Node.next : main.Node<A"
	  ">?",
	  "variable initialization expression of main.Node.next" },
	{ "$s4main4NodeC6cachedSayxGvMTj", "dispatch thunk of main.Node.cached.modify : [A]",
	  "dispatch thunk of main.Node.cached.modify" },
	{ "$s4main4NodeCMa", "type metadata accessor for main.Node",
	  "type metadata accessor for main.Node" },
	{ "$s4main4NodeCMr", "type metadata completion function for main.Node",
	  "type metadata completion function for main.Node" },
	{ "$s4main4NodeCMu", "method lookup function for main.Node",
	  "method lookup function for main.Node" },
	{ "$s4main4NodeCyxSiciM", "main.Node.subscript.modify : (Swift.Int) -> A",
	  "main.Node.subscript.modify" },
	{ "$s4main4NodeCyxSicig", "main.Node.subscript.getter : (Swift.Int) -> A",
	  "main.Node.subscript.getter" },
	{ "$s4main4NodeCyxSicis", "main.Node.subscript.setter : (Swift.Int) -> A",
	  "main.Node.subscript.setter" },
	{ "$s4main4TreeOwCP", "initializeBufferWithCopyOfBuffer value witness for main.Tree",
	  "initializeBufferWithCopyOfBuffer value witness for main.Tree" },
	{ "$s4main4TreeOwca", "assignWithCopy value witness for main.Tree",
	  "assignWithCopy value witness for main.Tree" },
	{ "$s4main4TreeOwcp", "initializeWithCopy value witness for main.Tree",
	  "initializeWithCopy value witness for main.Tree" },
	{ "$s4main4TreeOwta", "assignWithTake value witness for main.Tree",
	  "assignWithTake value witness for main.Tree" },
	{ "$s4main4TreeOwug", "getEnumTag value witness for main.Tree",
	  "getEnumTag value witness for main.Tree" },
	{ "$s4main4TreeOwxx", "destroy value witness for main.Tree",
	  "destroy value witness for main.Tree" },
	{ "$s4main4cfunys5Int32VA2DXC_SpySiGSgSWtF",
	  "main.cfun(@convention(c) (Swift.Int32) -> Swift.Int32, Swift.Unsaf"
	  "eMutablePointer<Swift.Int>?, Swift.UnsafeRawBufferPointer) -> Swif"
	  "t.Int32",
	  "main.cfun" },
	{ "$s4main4swapyyxz_xztlF", "main.swap<A>(inout A, inout A) -> ()", "main.swap" },
	{ "$s4main5OuterO3MidO2InVMi", "type metadata instantiation function for main.Outer.Mid.In",
	  "type metadata instantiation function for main.Outer.Mid.In" },
	{ "$s4main5asyncSiyYaFTY0_",
	  "(1) suspend resume partial function for main.async() async -> Swif"
	  "t.Int",
	  "(1) suspend resume partial function for main.async" },
	{ "$s4main5groupySDySiSayAA1KVGGAEFSiADXEfU_",
	  "closure #1 (main.K) -> Swift.Int in main.group([main.K]) -> [Swift"
	  ".Int : [main.K]]",
	  "closure #1 in main.group" },
	{ "$s4main5outeryyF5innerL_yyF", "inner #1 () -> () in main.outer() -> ()",
	  "inner #1 in main.outer" },
	{ "$s4main7CounterC1nSivs", "main.Counter.n.setter : Swift.Int", "main.Counter.n.setter" },
	{ "$s4main7CounterC3inc2byS2i_tYaFTQ1_",
	  "(2) await resume partial function for main.Counter.inc(by: Swift.I"
	  "nt) async -> Swift.Int",
	  "(2) await resume partial function for main.Counter.inc" },
	{ "$s4main9UsesClampV1zSivM", "main.UsesClamp.z.modify : Swift.Int",
	  "main.UsesClamp.z.modify" },
	{ "$s4main9UsesClampV1zSivpfP",
	  "property wrapper backing initializer of main.UsesClamp.z : Swift.I"
	  "nt",
	  "property wrapper backing initializer of main.UsesClamp.z" },
	{ "$sSSWOh", "outlined destroy of Swift.String", "outlined destroy of Swift.String" },
	{ "$sSayxGSKsMc",
	  "protocol conformance descriptor for [A] : Swift.BidirectionalColle"
	  "ction in Swift",
	  "protocol conformance descriptor for Swift.Array : Swift.Bidirectio"
	  "nalCollection" },
	{ "$sScPSgWOc", "outlined init with copy of Swift.TaskPriority?",
	  "outlined init with copy of Swift.Optional" },
	{ "$sSh8_VariantV6insertySb8inserted_x17memberAfterInserttxnF4main1KV"
	  "_TB5",
	  "generic specialization <main.K> of Swift.Set._Variant.insert(__own"
	  "ed A) -> (inserted: Swift.Bool, memberAfterInsert: A)",
	  "Swift.Set._Variant.insert" },
	{ "$sSiIegy_SiIegr_TR",
	  "reabstraction thunk helper from @escaping @callee_guaranteed (@uno"
	  "wned Swift.Int) -> () to @escaping @callee_guaranteed () -> (@out "
	  "Swift.Int)",
	  "reabstraction thunk helper" },
	{ "$sSsMn", "nominal type descriptor for Swift.Substring",
	  "nominal type descriptor for Swift.Substring" },
	{ "$ss22_ContiguousArrayBufferV20_consumeAndCreateNewAByxGyFSnySiG_Tg"
	  "q5",
	  "generic specialization <serialized, Swift.Range<Swift.Int>> of Swi"
	  "ft._ContiguousArrayBuffer._consumeAndCreateNew() -> Swift._Contigu"
	  "ousArrayBuffer<A>",
	  "Swift._ContiguousArrayBuffer._consumeAndCreateNew" },
	{ "$ss5print_9separator10terminatoryypd_S2StFfA0_",
	  "default argument 1 of Swift.print(_: Any..., separator: Swift.Stri"
	  "ng, terminator: Swift.String) -> ()",
	  "default argument 1 of Swift.print" },
	{ "$ss5print_9separator10terminatoryypd_S2StFfA1_",
	  "default argument 2 of Swift.print(_: Any..., separator: Swift.Stri"
	  "ng, terminator: Swift.String) -> ()",
	  "default argument 2 of Swift.print" },
	{ "_$S4main3fooyyF", "main.foo() -> ()", "main.foo" },
	{ "_$s4main3fooyyF", "main.foo() -> ()", "main.foo" },
	{ "_T04main3fooyyF", "main.foo() -> ()", "main.foo" },
};

static const char *in_style(const char *name, enum demangle_style style)
{
	static char buf[8192];

	return demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, style, buf, sizeof(buf));
}

TEST(names)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		ASSERT_STR(in_style(vectors[i].mangled, DEMANGLE_FULL), vectors[i].full);
		ASSERT_STR(in_style(vectors[i].mangled, DEMANGLE_SHORT), vectors[i].brief);
	}
}

TEST(key_paths)
{
	ASSERT_STR(in_style("$s4main4NodeC4nextACyxGSgvplAETK", DEMANGLE_FULL),
		   "key path getter for main.Node.next : main.Node<A>? : <A>main.Node<A>");
	ASSERT_STR(in_style("$s4main4NodeC4nextACyxGSgvplAETK", DEMANGLE_SHORT),
		   "key path getter for main.Node.next");
	ASSERT_STR(in_style("$s4main9UsesClampV1zSivpACTk", DEMANGLE_FULL),
		   "key path setter for main.UsesClamp.z : Swift.Int : main.UsesClamp");
}

TEST(clones_and_unicode)
{
	ASSERT_STR(in_style("$s4main4BaseC1pSivM.resume.0", DEMANGLE_FULL),
		   "main.Base.p.modify : Swift.Int [clone .resume.0]");
	ASSERT_STR(in_style("$s4main3fooyyF.cold", DEMANGLE_SHORT), "main.foo [clone .cold]");
	ASSERT_STR(in_style("$s8mangling0012vergenza_JFayyF", DEMANGLE_SHORT),
		   "mangling.verg\303\274enza");
	ASSERT_STR(in_style("$s8mangling007p_qcaDcoiyS2i_SitF", DEMANGLE_FULL),
		   "mangling.\302\253+\302\273 infix(Swift.Int, Swift.Int) -> Swift.Int");
}

/* How arguments changed is left out, but not that they did. */
TEST(function_signature_specialization)
{
	ASSERT_STR(in_style("$s4main3fooyySi_S2itFTf4nnd_n", DEMANGLE_FULL),
		   "function signature specialization of "
		   "main.foo(Swift.Int, Swift.Int, Swift.Int) -> ()");
	ASSERT_STR(in_style("$s4main3fooyySi_S2itFTf4nnd_n", DEMANGLE_SHORT), "main.foo");
}

TEST(what_is_not_understood_stays)
{
	static const char *const names[] = {
		"$s",
		"$s4",
		"$s4main",
		"$s4mainF",
		"$s4main3fooyyFyyF",
		"$s4main3fooyy",
		"$s4main3fooyyF?",
		"$s4main3fooyyFTf0",
		"$s99999999main",
		"$s4main3foo00yyF",
		"$sA_",
		"$sAZ",
		"$s4main3fooyyFTg5",
		"$s0a4main3fooyyF",
		"$sSiSiTR",
		"$sS9999999i",
		"$s4main1xyXjF",
		"$syyF",
		"$s4main1f1x1yySi_tF",
		"$S",
		"_T0",
		"_T",
		"_T03",
		"$sBi",
		"$sIegy_TR",
		"$s4main3barySiSgFF",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ASSERT_STR(in_style(names[i], DEMANGLE_FULL), names[i]);
}

/* Whatever part of a name is missing or wrong: it is demangled, or it stays; it fits. */
TEST(damaged)
{
	char name[512], buf[64];

	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		size_t len = strlen(vectors[i].mangled);

		for (size_t k = 0; k < len; k++) {
			memcpy(name, vectors[i].mangled, len + 1);
			name[k] ^= (char)(1 + k % 7);
			demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, DEMANGLE_FULL, buf,
				      sizeof(buf));
			ASSERT(strnlen(buf, sizeof(buf)) < sizeof(buf));
			snprintf(name, k + 1, "%s", vectors[i].mangled);
			demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, DEMANGLE_SHORT, buf,
				      sizeof(buf));
			ASSERT(strnlen(buf, sizeof(buf)) < sizeof(buf));
		}
	}
}

/* "<begin><part, nr times><end>" must come back in some form, and soon. */
static void survive(const char *begin, const char *part, size_t nr, const char *end)
{
	size_t size = strlen(begin) + nr * strlen(part) + strlen(end) + 1;
	_cleanup_free_ char *name = malloc(size);
	char *at = stpcpy(name, begin);

	for (size_t i = 0; i < nr; i++)
		at = stpcpy(at, part);
	stpcpy(at, end);
	for (int style = 0; style < DEMANGLE_STYLE_MAX_; style++)
		ASSERT(*in_style(name, (enum demangle_style)style));
}

TEST(depth_and_length)
{
	static const size_t numbers[] = { 10, 100, 1000, 4000, 15000 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		size_t nr = numbers[i];

		survive("$s4main3fooyySi", "Sg", nr, "F");
		survive("$s4main3fooyySi", "m", nr, "F");
		survive("$s4main3fooyySi", "Xp", nr, "F");
		survive("$s4main3fooyy", "Si", nr, "F");
		survive("$s4main3fooyySi_", "Si", nr, "tF");
		survive("$s4main", "3foo", nr, "yyF");
		survive("$s4main", "3fooV", nr, "3baryyF");
		survive("$s4main3fooyyF", "yycfU_", nr, "");
		survive("$s4main3fooyyF", "TA", nr, "");
		survive("$s4main3fooyyF", "Si_Tg5", nr, "");
		survive("$s4main3fooyyF", "L_yyF", nr, "");
		survive("$s", "02aA", nr, "");
		survive("$s", "S2000i", nr, "");
		survive("$s4main", "A2000A", nr, "");
		survive("$s4main1AVy", "_", nr, "G");
		survive("$s4main3fooyyx", "7ElementQ_", nr, "F");
		survive("$s00", "9", nr, "");
	}
}

/* Each part doubles what comes out: a tuple of the one before, twice. */
TEST(explosion)
{
	char name[8192], *at = stpcpy(name, "$s4main1AVy");

	for (unsigned int i = 0; i < 100; i++)
		at = stpcpy(at, "ABy");
	stpcpy(at, "G");
	survive(name, "", 0, "");
	survive("$s4main1AVySiGF", "AEyACG", 60, "");
	survive("$s4main3fooyySaySiG", "_AAtSaySiG", 60, "F");
}
