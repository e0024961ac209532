/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/hotspot/hotspot_stubs.h"

#include "util/cleanup.h"
#include "util/sorted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	/* Around the static members that vmStructs tells of. The data of JDK 8 to 25 are 350 to 700
	 * KiB; the list's head was always within 300 KiB of one of them. */
	SCAN_AROUND = 512 << 10,
	SCAN_MAX = 4 << 20,
	SCAN_BITE = 64 << 10,
	/* JDK 17 has 125 stubs, JDK 25 has 161. */
	LIST_MAX = 2048,
	/* A JVM that starts may have no list yet. One that never has is not asked again and again.
	 */
	SCANS_AT_START = 8,
	/* Entries of what looks like a list that are read in one search: of a real one some 6,000.
	 */
	SCAN_ENTRIES_MAX = 1 << 16,
	STUB_SIZE_MAX = 1 << 20,
};

struct stub {
	uint64_t start, end;
	char *name;
};

struct stub_list {
	VEC(struct stub) stubs; /* sorted by start */
	size_t size;		/* bytes held */
	bool growing;		/* the JVM was writing the newest one's code */
};

struct hotspot_stubs {
	struct runtime_kept kept; /* `list`; comes first */
	const struct hotspot_vm *vm;
	uint64_t head;		    /* where the pointer to the first one is; 0: not found */
	uint64_t first;		    /* what was there; 0: the list must be read again */
	uint32_t misses, next_scan; /* UINT32_MAX: no more */
	uint32_t entries_left;	    /* that may be read in this search */
	struct stub_list list;
};

/* A StubCodeDesc; `end` is 0 until its code is written. JDK 8 has a number between name and start.
 */
struct stub_desc {
	uint64_t next, group, name, start, end;
};

static void list_fini(struct stub_list *l)
{
	for (size_t i = 0; i < l->stubs.nr; i++)
		free(l->stubs.items[i].name);
	vec_free(&l->stubs);
	l->size = 0;
}

static void drop_list(struct runtime_kept *kept)
{
	struct hotspot_stubs *s = (struct hotspot_stubs *)kept;

	list_fini(&s->list);
	s->first = 0;
}

struct hotspot_stubs *hotspot_stubs_new(const struct hotspot_vm *vm)
{
	struct hotspot_stubs *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kept.drop = drop_list;
	s->vm = vm;
	return s;
}

void hotspot_stubs_free(struct hotspot_stubs *s)
{
	if (!s)
		return;
	runtime_keep_no_more(s->vm->target->keeper, &s->kept);
	list_fini(&s->list);
	free(s);
}

static int read_desc(const struct hotspot_vm *vm, uint64_t addr, struct stub_desc *ret)
{
	bool numbered = vm->release <= 8;
	uint64_t words[6];
	struct stub_desc d;
	int r = runtime_read(vm->target, addr, words, numbered ? sizeof(words) : sizeof(words) - 8);

	if (r < 0)
		return r;
	d = (struct stub_desc){ words[0], words[1], words[2], words[numbered ? 4 : 3],
				words[numbered ? 5 : 4] };
	if ((d.end && (d.start >= d.end || d.end - d.start > STUB_SIZE_MAX)) || !d.group ||
	    !d.name || !hotspot_find_heap(vm, d.start))
		return -EBADMSG;
	*ret = d;
	return 0;
}

static int read_word(const struct hotspot_vm *vm, uint64_t addr, char *ret, size_t size)
{
	ssize_t len = hotspot_read_string(vm, addr, ret, size);

	if (len < 0)
		return (int)len;
	for (ssize_t i = 0; i < len; i++) {
		if (ret[i] < ' ' || ret[i] > '~')
			return -EBADMSG;
	}
	return len ? 0 : -EBADMSG;
}

/* The name in the midst of what JDK 26 ("Stub Generator call_stub_stub") and 27 ("call_stub_stub
 * (stub gen)") make of it: as it was before. */
static char *plain_name(char *name)
{
	static const char before[] = "Stub Generator ", behind[] = " (stub gen)", stub[] = "_stub";
	size_t len = strlen(name);
	bool blob = false;

	if (!strncmp(name, before, strlen(before))) {
		name += strlen(before);
		len -= strlen(before);
		blob = true;
	}
	if (len > strlen(behind) && !strcmp(name + len - strlen(behind), behind)) {
		len -= strlen(behind);
		blob = true;
	}
	if (blob && len > strlen(stub) && !strncmp(name + len - strlen(stub), stub, strlen(stub)))
		len -= strlen(stub);
	name[len] = '\0';
	return name;
}

static int by_start(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The list from `addr` on. -EBADMSG: it is none, or there were too many. */
static int read_list(struct hotspot_stubs *s, uint64_t addr, struct stub_list *ret)
{
	const struct hotspot_vm *vm = s->vm;
	_cleanup_(list_fini) struct stub_list l = { 0 };
	char group[HOTSPOT_NAME_MAX], name[HOTSPOT_NAME_MAX];
	struct stub_desc d = { .next = addr };
	bool routines = false;

	while (d.next) {
		struct stub stub;
		int r = -EBADMSG;

		if (s->entries_left && l.stubs.nr < LIST_MAX) {
			s->entries_left--;
			r = read_desc(vm, d.next, &d);
		}

		if (!r)
			r = read_word(vm, d.group, group, sizeof(group));
		if (!r)
			r = read_word(vm, d.name, name, sizeof(name));
		if (r < 0)
			return r;
		routines |= !strcmp(group, "StubRoutines");
		if (!d.end) {
			if (l.growing || l.stubs.nr)
				return -EBADMSG;
			l.growing = true;
			continue;
		}
		stub = (struct stub){ d.start, d.end, NULL };
		if (asprintf(&stub.name, "%s::%s", group, plain_name(name)) < 0)
			return -ENOMEM;
		r = vec_push(&l.stubs, stub);
		if (r < 0) {
			free(stub.name);
			return r;
		}
		l.size += strlen(stub.name) + 1;
	}
	if (!routines)
		return -EBADMSG;
	l.size += l.stubs.cap * sizeof(*l.stubs.items);
	qsort(l.stubs.items, l.stubs.nr, sizeof(*l.stubs.items), by_start);
	list_fini(ret);
	*ret = l;
	l = (struct stub_list){ 0 };
	return 0;
}

/* Looks for the head of the list in `words`, which stand at `addr`: the longest list is it. [low,
 * high) is the file's, as far as is known. */
static void scan_words(struct hotspot_stubs *s, uint64_t addr, const uint64_t *words, size_t nr,
		       uint64_t low, uint64_t high)
{
	struct stub_desc d;

	for (size_t i = 0; i < nr && s->entries_left; i++) {
		struct stub_list l = { 0 };

		/* A StubCodeDesc comes from malloc(), and leads to strings of the file. That leaves
		 * some 6,000 words to follow. */
		if (words[i] < 65536 || words[i] % 8 || words[i] >> 48 ||
		    (words[i] >= low && words[i] < high) || (i && words[i] == words[i - 1]) ||
		    hotspot_find_heap(s->vm, words[i]))
			continue;
		s->entries_left--;
		if (read_desc(s->vm, words[i], &d) || d.group < low || d.group >= high ||
		    read_list(s, words[i], &l))
			continue;
		if (l.stubs.nr > s->list.stubs.nr) {
			list_fini(&s->list);
			s->list = l;
			s->head = addr + i * 8;
			s->first = words[i];
		} else {
			list_fini(&l);
		}
	}
}

/* The static members that are known, the lowest and the highest. */
static void find_statics(const struct hotspot_vm *vm, uint64_t *low_ret, uint64_t *high_ret)
{
	const uint64_t known[] = { vm->at_heaps,       vm->at_heap,	  vm->at_call_stub_return,
				   vm->at_interpreter, vm->at_deopt_blob, vm->at_oop_base };
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i] && known[i] < low)
			low = known[i];
		if (known[i] > high)
			high = known[i];
	}
	*low_ret = low;
	*high_ret = high;
}

static void scan(struct hotspot_stubs *s)
{
	_cleanup_free_ uint64_t *words = malloc(SCAN_BITE);
	uint64_t low, high, end;

	find_statics(s->vm, &low, &high);
	if (!words || low > high || high - low > SCAN_MAX)
		return;
	end = high;
	low = (low > SCAN_AROUND ? low - SCAN_AROUND : 0) & ~4095ull;
	high = (high + SCAN_AROUND) & ~4095ull;
	for (uint64_t at = low; at < high;) {
		size_t size = high - at < SCAN_BITE ? high - at : SCAN_BITE;
		int r = runtime_read(s->vm->target, at, words, size);

		/* Not all of it is libjvm's, or anybody's. */
		if (r < 0 && size > 4096) {
			size = 4096;
			r = runtime_read(s->vm->target, at, words, size);
		}
		if (r == -ESRCH)
			return;
		if (!r)
			scan_words(s, at, words, size / 8, s->vm->target->bias, end);
		at += size;
	}
}

static const char *find(const struct hotspot_stubs *s, uint64_t pc)
{
	const struct stub *stubs = s->list.stubs.items;
	size_t low = sorted_before(s->list.stubs.nr, i, stubs[i].start <= pc);

	return low && pc < stubs[low - 1].end ? stubs[low - 1].name : NULL;
}

/* The list has been read. */
static void keep(struct hotspot_stubs *s)
{
	runtime_keep_no_more(s->vm->target->keeper, &s->kept);
	if (s->list.size)
		runtime_keep(s->vm->target->keeper, &s->kept, s->list.size);
}

const char *hotspot_stubs_find(struct hotspot_stubs *s, uint64_t pc)
{
	const char *name = find(s, pc);
	uint64_t first;

	runtime_use_kept(s->vm->target->keeper, &s->kept);
	if (name)
		return name;
	s->entries_left = SCAN_ENTRIES_MAX;
	if (s->head) {
		/* It grows while the JVM starts and compiles. */
		if (!runtime_read(s->vm->target, s->head, &first, sizeof(first)) &&
		    (first != s->first || s->list.growing) && !read_list(s, first, &s->list)) {
			s->first = first;
			keep(s);
		}
	} else if (s->misses++ >= s->next_scan) {
		s->next_scan = s->misses < SCANS_AT_START ? s->misses : s->misses * 2;
		scan(s);
		keep(s);
		if (!s->entries_left)
			s->next_scan = UINT32_MAX;
	}
	return find(s, pc);
}
