/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark("x") prints where it was called: "x 0x401234", the call instruction's address in the
 * program's own address space. What stands there is written in the source: the line of that call
 * has "@x.0 FUNCTION", that of the inlined call around it "@x.1 FUNCTION", and so on, in a comment
 * of its own. "@x.last FUNCTION" is the outermost where it does not matter what is between.
 * FUNCTION is the full name, or several, "a|b", of which one must be it; a "*" stands for anything.
 * known.py reads them.
 */
#ifdef __cplusplus
extern "C" {
#endif
void mark(const char *name);
#ifdef __cplusplus
}
#endif

#define INLINE	      inline ALWAYS_INLINE
#define ALWAYS_INLINE __attribute__((always_inline))
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
/* Behind a call: it is no tail call, and the frame stays. */
#define KEEP() __asm__ volatile("" ::: "memory")
