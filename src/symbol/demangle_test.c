// SPDX-License-Identifier: Apache-2.0
#include "symbol/demangle.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/cleanup.h"

struct pair {
	const char *mangled, *name;
};

static void expect(const struct pair *pairs, size_t nr)
{
	char buf[4096];

	for (size_t i = 0; i < nr; i++)
		ASSERT_STR(demangle(pairs[i].mangled, buf, sizeof(buf)), pairs[i].name);
}

#define EXPECT(pairs) expect(pairs, sizeof(pairs) / sizeof(*(pairs)))

TEST(cxx)
{
	static const struct pair pairs[] = {
		{ "_Z3foov", "foo()" },
		{ "_ZN4work4leafEi", "work::leaf(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZNKSs4sizeEv", "std::string::size() const" },
		{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()" },
		{ "_ZZ4mainENKUlT_E_clIiEEDaS_",
		  "auto main::{lambda(auto:1)#1}::operator()<int>(int) const" },
		{ "_ZplRK1AS1_", "operator+(A const&, A const&)" },
		{ "_ZN1AC2Ev", "A::A()" },
		{ "_ZN1AD0Ev", "A::~A()" },
		{ "_ZThn16_N4Base1fEv", "non-virtual thunk to Base::f()" },
		{ "_Z1fPFvPKcEM1CFivE", "f(void (*)(char const*), int (C::*)())" },
		{ "_Z3maxIiET_S0_S0_", "int max<int>(int, int)" },
	};

	EXPECT(pairs);
}

TEST(rust)
{
	static const struct pair pairs[] = {
		{ "_ZN3std2rt10lang_start17h0123456789abcdefE", "std::rt::lang_start" },
		{ "_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$"
		  "closure$u7d$$u7d$$GT$17h0123456789abcdefE",
		  "core::ptr::drop_in_place<std::rt::lang_start<()>::{{closure}}>" },
		{ "_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop"
		  "17h0123456789abcdefE",
		  "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop" },
		{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
		{ "_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example" },
		{ "_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>" },
		{ "_RNCNvC4bloo3foo0", "bloo::foo::{closure#0}" },
		{ "_RNvMs_C3fooNtB4_3Bar3baz", "<foo::Bar>::baz" },
		{ "_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
		  "<mycrate::Example as mycrate::Trait>::foo" },
		{ "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
		  "utf8_idents::საჭმელად_გემრიელი_სადილი" },
		/* Like a hash, but none: C++. */
		{ "_ZN3foo17h0123456789abcdegE", "foo::h0123456789abcdeg" },
	};

	EXPECT(pairs);
}

TEST(d)
{
	static const struct pair pairs[] = {
		{ "_Dmain", "D main" },
		{ "_D8demangle4testFZv", "demangle.test()" },
		{ "_D8demangle4testFaZv", "demangle.test(char)" },
		{ "_D3std5stdio4File5closeMFNeZv", "std.stdio.File.close()" },
		{ "_D8demangle4testFAaZv", "demangle.test(char[])" },
		{ "_D8demangle13__T4testTiTaZ1fFZv", "demangle.test!(int, char).f()" },
	};

	EXPECT(pairs);
}

TEST(clones)
{
	static const struct pair pairs[] = {
		{ "_Z3foov.cold", "foo() [clone .cold]" },
		{ "_Z3foov.part.0.isra.0.cold",
		  "foo() [clone .part.0] [clone .isra.0] [clone .cold]" },
		{ "_ZN4work4leafEi.constprop.0", "work::leaf(int) [clone .constprop.0]" },
		{ "_Z3foov.lto_priv.0", "foo() [clone .lto_priv.0]" },
		{ "_Z3foov.llvm.12345", "foo() [clone .llvm.12345]" },
		{ "_ZN3std2rt10lang_start17h0123456789abcdefE.llvm.123",
		  "std::rt::lang_start [clone .llvm.123]" },
		{ "_RNvC1a1b.llvm.99", "a::b [clone .llvm.99]" },
		{ "_RNvC1a1b.part.0.cold", "a::b [clone .part.0] [clone .cold]" },
		{ "_D8demangle4testFZv.cold", "demangle.test() [clone .cold]" },
		/* A dot inside the name of GCC's coroutine frames. */
		{ "_ZN2co5outerEPZNS_5outerEvE20_ZN2co5outerEv.Frame.actor",
		  "co::outer(co::outer()::_ZN2co5outerEv.Frame*) [clone .actor]" },
	};

	EXPECT(pairs);
}

TEST(what_is_not_mangled_stays)
{
	static const struct pair pairs[] = {
		{ "", "" },
		{ "main", "main" },
		{ "main.cold", "main.cold" },
		{ "_", "_" },
		{ "_Z", "_Z" },
		{ "_R", "_R" },
		{ "_D", "_D" },
		{ "_Zebra", "_Zebra" },
		{ "_Release", "_Release" },
		{ "_Destroy", "_Destroy" },
		{ "_ZN4work4leafE", "work::leaf" },
		{ "_ZN4work4lea", "_ZN4work4lea" },
		{ "_start", "_start" },
		{ "i", "i" },
		{ "_Z3foov\n", "_Z3foov\n" },
	};

	EXPECT(pairs);
}

TEST(what_does_not_fit_is_cut)
{
	char buf[16] = "untouched";

	ASSERT_STR(demangle("_ZN4work4leafEi", buf, 10), "work::lea");
	ASSERT_STR(demangle("_RNvNtCs1234_7mycrate3foo3bar", buf, 10), "mycrate::");
	ASSERT_STR(demangle("_D8demangle4testFaZv", buf, 10), "demangle.");
	ASSERT_STR(demangle("a_long_plain_name", buf, 10), "a_long_pl");
	ASSERT_STR(demangle("_Z3foov.cold", buf, 10), "foo() [cl");
	ASSERT_STR(demangle("_Z3foov", buf, 1), "");
	ASSERT_EQ(demangle("_Z3foov", buf, 0) == buf, 1);
}

/* "<begin><part, nr times><end>" must come back in some form, and soon. */
static void survive(const char *begin, const char *part, size_t nr, const char *end)
{
	size_t size = strlen(begin) + nr * strlen(part) + strlen(end) + 1;
	_cleanup_free_ char *name = malloc(size);
	char buf[4096];
	char *at = stpcpy(name, begin);

	for (size_t i = 0; i < nr; i++)
		at = stpcpy(at, part);
	stpcpy(at, end);
	for (int style = 0; style < DEMANGLE_STYLE_MAX_; style++) {
		ASSERT(demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, (enum demangle_style)style, buf,
				     sizeof(buf)) == buf);
		ASSERT(strnlen(buf, sizeof(buf)) < sizeof(buf));
		ASSERT(buf[0]);
	}
}

TEST(depth)
{
	static const size_t numbers[] = { 100, 1000, 3000, 8000, 100000 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		size_t nr = numbers[i];

		survive("_Z1f", "P", nr, "i");
		survive("_Z1f", "N", nr, "");
		survive("_Z1fI", "X", nr, "");
		survive("_Z1f", "1AI", nr, "E");
		survive("_ZN", "1a", nr, "17h0123456789abcdefE");
		survive("_RINvC1a1b", "R", nr, "mE");
		survive("_R", "Nv", nr, "C1a");
		survive("_RINvC1a1b", "TS", nr, "mE");
		survive("_RNvC1au8000_", "z", nr, "");
		survive("_D1aF", "A", nr, "iZv");
		survive("_D", "1a", nr, "");
		survive("_Z3foov", ".cold", nr, "");
		survive("_Z", ".", nr, "");
	}
}

/* Strings that do not end, brackets that do not close: each is looked for once. */
TEST(long_plain_names)
{
	static const char *const parts[] = { "\"\\", "<", "(", "a<b>", "operator<", "'", "->" };
	static char name[1 << 20], buf[4096];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t len = strlen(parts[i]), used = 2;

		stpcpy(name, "a<");
		for (; used + len + 1 < sizeof(name); used += len)
			memcpy(name + used, parts[i], len + 1);
		for (int language = 0; language < SYMBOL_LANGUAGE_MAX_; language++) {
			demangle_name(name, (enum symbol_language)language, DEMANGLE_SHORT, buf,
				      sizeof(buf));
			ASSERT(buf[0] == 'a');
		}
	}
}

/* Each part doubles what comes out. */
TEST(explosion)
{
	char name[4096], buf[4096];
	size_t used;

	/* std::pair<X, X> of the pair before, 60 times. */
	used = (size_t)snprintf(name, sizeof(name), "_Z1fSt4pairIiiE");
	for (unsigned int i = 0; i < 60; i++) {
		char digit[3] = { 0 };

		if (i >= 36)
			digit[0] = '1';
		digit[i >= 36] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36];
		used += (size_t)snprintf(name + used, sizeof(name) - used, "S_IS%s_S%s_E", digit,
					 digit);
	}
	ASSERT_EQ(strlen(demangle(name, buf, sizeof(buf))), sizeof(buf) - 1);
	ASSERT(!strncmp(buf, "f(std::pair<int, int>, std::pair<std::pair<int, int>", 50));

	/* A Rust tuple of the tuple before. B7_ leads to TuuE. */
	ASSERT_STR(demangle("_RINvC1a1bTuuETB7_B7_ETBb_Bb_EE", buf, sizeof(buf)),
		   "a::b::<((), ()), (((), ()), ((), ())), "
		   "((((), ()), ((), ())), (((), ()), ((), ())))>");

	/* Lifetimes without number, also where nothing is printed. */
	survive("_RINvC1a1bFGzzzzzzzz_EuE", "", 0, "");
	survive("_RMIC1aFGzzzzzzzz_EuEu", "", 0, "");
	survive("_RMIC1a", "FGZZZ_Eu", 1000, "Eu");

	/* D: an associative array of the one before, by itself. */
	ASSERT_STR(demangle("_D1aFHiiHQeQgZv", buf, sizeof(buf)),
		   "a(int[int], int[int][int[int]])");
	for (size_t i = 0; i < 100; i++)
		survive("_D1aFHiiHQeQg", "HQgQi", i, "Zv");
	survive("_D1aFS1b", "QdQdQd", 500, "Zv");
}

static void expect_short(const struct pair *pairs, size_t nr, enum symbol_language language)
{
	char buf[4096];

	for (size_t i = 0; i < nr; i++)
		ASSERT_STR(
			demangle_name(pairs[i].mangled, language, DEMANGLE_SHORT, buf, sizeof(buf)),
			pairs[i].name);
}

#define EXPECT_SHORT(pairs, language)                                                              \
	expect_short(pairs, sizeof(pairs) / sizeof(*(pairs)), SYMBOL_LANGUAGE_##language)

TEST(short_cxx)
{
	static const struct pair pairs[] = {
		{ "_Z3foov", "foo" },
		{ "_ZN4work4leafEi", "work::leaf" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back" },
		{ "_ZNKSs4sizeEv", "std::string::size" },
		{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
		{ "_ZZ4mainENKUlT_E_clIiEEDaS_", "main::{lambda#1}::operator()" },
		{ "_ZZNK3foo3barEvENKUlRKT_E_clIiEEDaS3_", "foo::bar::{lambda#1}::operator()" },
		{ "_ZZ3fooIiET_S0_ENKUlvE_clEv", "foo::{lambda#1}::operator()" },
		{ "_ZN1AC2Ev", "A::A" },
		{ "_ZN1AD0Ev", "A::~A" },
		{ "_ZThn16_N4Base1fEv", "non-virtual thunk to Base::f" },
		{ "_ZN5boost3barEMN1A1BEFvvE", "boost::bar" },
		{ "_Z3maxIiET_S0_S0_", "max" },
		{ "_ZlsIiERSoS0_T_", "operator<<" },
		{ "_ZN1AltIiEEbT_", "A::operator<" },
		{ "_ZN1AssERKS_", "A::operator<=>" },
		{ "_ZN1AgtERKS_", "A::operator>" },
		{ "_ZNK1AptEv", "A::operator->" },
		{ "_ZN1ApmERi", "A::operator->*" },
		{ "_ZN1AclEv", "A::operator()" },
		{ "_ZN1AclIiEEvT_", "A::operator()" },
		{ "_ZN1AixEi", "A::operator[]" },
		{ "_ZNK3FoocvbEv", "Foo::operator bool" },
		{ "_ZN1AcvSt6vectorIiSaIiEEEv", "A::operator std::vector" },
		{ "_Zli2_xy", "operator\"\" _x" },
		{ "_ZTV3FooIiE", "vtable for Foo" },
		{ "_ZGVZ3foovE1x", "guard variable for foo::x" },
		{ "_ZZ1fvEN3$_08__invokeEi", "f::$_0::__invoke" },
		{ "_ZN1A1fILNS_1EE1EEEvv", "A::f" },
		{ "_ZN3FooB5cxx11Ev", "Foo[abi:cxx11]" },
		{ "_Z3foov.part.0.cold", "foo [clone .part.0] [clone .cold]" },
		{ "_ZN3FooIiE3barEi.constprop.0", "Foo::bar [clone .constprop.0]" },
		{ "_ZN2co5outerEPZNS_5outerEvE20_ZN2co5outerEv.Frame.actor",
		  "co::outer [clone .actor]" },
		/* Its valid part alone would be another name. */
		{ "_Z3foov\n", "_Z3foov\n" },
		{ "_Z3foovzzz(", "_Z3foovzzz(" },
	};

	EXPECT_SHORT(pairs, UNKNOWN);
	EXPECT_SHORT(pairs, CPP);
}

TEST(short_rust)
{
	static const struct pair pairs[] = {
		{ "_ZN3std2rt10lang_start17h0123456789abcdefE", "std::rt::lang_start" },
		{ "_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$"
		  "closure$u7d$$u7d$$GT$17h0123456789abcdefE",
		  "core::ptr::drop_in_place" },
		{ "_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop"
		  "17h0123456789abcdefE",
		  "<alloc::vec::Vec as core::ops::drop::Drop>::drop" },
		{ "_ZN4core3str21_$LT$impl$u20$str$GT$4trim17h0123456789abcdefE",
		  "core::str::<impl str>::trim" },
		{ "_RINvNtC3std3mem8align_ofdE", "std::mem::align_of" },
		{ "_RNCNvC4bloo3foo0", "bloo::foo::{closure#0}" },
		{ "_RNvMs_C3fooNtB4_3Bar3baz", "foo::Bar::baz" },
		{ "_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
		  "<mycrate::Example as mycrate::Trait>::foo" },
		{ "_RNvYINtC1a1VmEINtC1b1TnE1f", "<a::V as b::T>::f" },
		{ "_RNvYFmEuNtC1b1T1f", "<fn(u32) as b::T>::f" },
		{ "_RNvYFmEmNtC1b1T1f", "<fn(u32) -> u32 as b::T>::f" },
		{ "_RNvYSmNtC1b1T1f", "<[u32] as b::T>::f" },
		{ "_RNvC1a1b.llvm.99", "a::b [clone .llvm.99]" },
	};

	EXPECT_SHORT(pairs, UNKNOWN);
}

TEST(short_d)
{
	static const struct pair pairs[] = {
		{ "_Dmain", "D main" },
		{ "_D8demangle4testFaZv", "demangle.test" },
		{ "_D3std5stdio4File5closeMFNeZv", "std.stdio.File.close" },
		{ "_D8demangle13__T4testTiTaZ1fFZv", "demangle.test.f" },
		{ "_D8demangle4testMxFZv", "demangle.test" },
		{ "_D8demangle4testFZv.cold", "demangle.test [clone .cold]" },
	};

	EXPECT_SHORT(pairs, UNKNOWN);
}

TEST(plain_names_of_debug_information)
{
	static const struct pair cxx[] = {
		{ "main", "main" },
		{ "ns::vec<int, std::less<int> >::push", "ns::vec::push" },
		{ "max<int>", "max" },
		{ "main::<lambda(int)>::operator()", "main::<lambda>::operator()" },
		{ "operator<< <char>", "operator<<" },
		{ "operator<<char>", "operator<" },
		{ "operator<<<char>", "operator<<" },
		{ "operator<=><int>", "operator<=>" },
		{ "A<&operator< >::f", "A::f" },
		{ "A<(Color)1>::f", "A::f" },
		{ "A<'<'>::f", "A::f" },
		{ "A<(3>2)>::f", "A::f" },
		{ "my_operator<int>", "my_operator" },
		{ "(anonymous namespace)::f<int>", "(anonymous namespace)::f" },
		{ "(anonymous class)::operator()", "(anonymous class)::operator()" },
		/* Nothing that can be understood. */
		{ "a<b", "a<b" },
		{ "a)", "a)" },
	}, rust[] = {
		{ "foo<alloc::string::String>", "foo" },
		{ "{impl#3}::new<u8>", "{impl#3}::new" },
		{ "a->b", "a->b" },
		{ "a>b", "a>b" },
	}, c[] = {
		{ "a<b>", "a<b>" },
	};

	EXPECT_SHORT(cxx, CPP);
	EXPECT_SHORT(rust, RUST);
	EXPECT_SHORT(c, C);
	EXPECT_SHORT(c, UNKNOWN);
}

TEST(go)
{
	static const struct pair both[] = {
		{ "main.main", "main.main" },
		{ "main.(*T).Method", "main.(*T).Method" },
		{ "main.main.func1", "main.main.func1" },
		{ "gopkg.in/yaml%2ev3.Marshal", "gopkg.in/yaml.v3.Marshal" },
		{ "a/b%25c%20d%22.F", "a/b%c d\".F" },
		{ "a/%c3%a9.F", "a/\303\251.F" },
		/* Not what Go writes. */
		{ "a%2", "a%2" },
		{ "a%", "a%" },
		{ "a%00b%0ac%41%2E", "a%00b%0ac%41%2E" },
	}, brief[] = {
		{ "main.Sum[go.shape.int]", "main.Sum[...]" },
		{ "main.(*List[go.shape.struct { F func([]int) }]).Push", "main.(*List[...]).Push" },
	};

	EXPECT(both);
	EXPECT_SHORT(both, UNKNOWN);
	EXPECT_SHORT(both, GO);
	EXPECT_SHORT(brief, UNKNOWN);
	EXPECT_SHORT(brief, GO);
}

/* libiberty itself leaves C++ names of more than 1,024 bytes. */
TEST(long_names)
{
	static const size_t numbers[] = { 20, 30, 100, 300 };
	char name[DEMANGLE_NAME_MAX + 8], buf[64];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		char *at = stpcpy(name, "_ZN1AI");

		for (size_t k = 0; k < numbers[i]; k++)
			at = stpcpy(at, "40a123456789a123456789a123456789a123456789S_");
		stpcpy(at, "E4leafEi");
		ASSERT_STR(demangle(name, buf, 15), "A<a123456789a1");
		ASSERT_STR(demangle_name(name, SYMBOL_LANGUAGE_UNKNOWN, DEMANGLE_SHORT, buf,
					 sizeof(buf)),
			   "A::leaf");
	}
}

/* Whose "I" it is is tried for each "T_I": the time would double with each. */
TEST(conversions)
{
	char name[8192], *at = stpcpy(name, "_Z"), buf[128];

	for (unsigned int i = 0; i < 200; i++)
		at = stpcpy(at, "N1AcvT_IL_Z");
	at = stpcpy(at, "N1AcvT_IiEEv");
	for (unsigned int i = 0; i < 200; i++)
		at = stpcpy(at, "EEEv");
	ASSERT_STR(demangle("_ZN1AcvT_IL_ZN1AcvT_IiEEvEEEv", buf, sizeof(buf)),
		   "A::operator A::operator int<int>()<A::operator int<int>()>()");
	demangle(name, buf, sizeof(buf));
	ASSERT(!strncmp(buf, "_ZN1AcvT_IL_Z", 13));
}
