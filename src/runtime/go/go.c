// SPDX-License-Identifier: Apache-2.0
/*
 * Go: the runtime's operations. Its frames are native ones, named by the file's table of functions
 * (symbol/symbol_go.c); here is what stands beside them: functions that are left out, labels, who
 * started a goroutine. What a file tells is in go_file.c, the walker's step is go.bpf.c. docs/go.md
 */
#include "runtime/go/go_file.h"
#include "runtime/go/go_text.h"

#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* debug/buildinfo: magic, size of a pointer, flags; then the version, or pointers to a
	 * string's header. */
	INFO_MAGIC = 14,
	INFO_FLAGS = 15,
	INFO_INLINE = 2,
	INFO_POINTER = 16,
	INFO_TEXT = 32,
	INFO_SIZE = INFO_TEXT + 1 + GO_VERSION_MAX,
	LENGTH_MAX = 127, /* of a varint of a byte */
};

/* The version in what lies at build_info; 1, or 0: it is elsewhere, *ret_at leads to it. */
static int parse_info(const uint8_t info[static INFO_SIZE], char ret[static GO_VERSION_MAX + 1],
		      uint64_t *ret_at)
{
	size_t len;

	memset(ret, 0, GO_VERSION_MAX + 1);
	*ret_at = 0;
	if (memcmp(info, "\xff Go buildinf:", INFO_MAGIC))
		return 1;
	if (!(info[INFO_FLAGS] & INFO_INLINE)) {
		memcpy(ret_at, info + INFO_POINTER, sizeof(*ret_at));
		return 0;
	}
	len = info[INFO_TEXT] <= LENGTH_MAX ? info[INFO_TEXT] : 0;
	memcpy(ret, info + INFO_TEXT + 1, len < GO_VERSION_MAX ? len : GO_VERSION_MAX);
	return 1;
}

/* What the file says of the Go that made it; false: up to 1.17 only the process tells. */
static bool file_version(const struct elf_file *elf, char ret[static GO_VERSION_MAX + 1])
{
	const struct elf_section *section = elf_file_section(elf, ".go.buildinfo");
	uint8_t info[INFO_SIZE];
	uint64_t at;

	memset(ret, 0, GO_VERSION_MAX + 1);
	return section && !elf_file_read_vaddr(elf, section->addr, info, sizeof(info)) &&
	       parse_info(info, ret, &at);
}

static bool go_knows(unsigned int major, unsigned int minor)
{
	struct go_record record;

	return major == 1 && go_layout(minor, &record);
}

static int go_probe(const struct elf_file *elf, struct runtime_about *about,
		    struct runtime_dso **ret)
{
	char version[GO_VERSION_MAX + 1];
	struct go_dso *dso;
	int r = go_file_read(elf, &dso);
	bool told;

	if (r && r != -ENOTSUP)
		return r;
	told = file_version(elf, version);
	runtime_is_version(about, "%s", version);
	if (about && r)
		about->lost =
			"its functions have the names that its symbols give them, if it has any";
	if (r)
		return runtime_not_supported(about, "its table of functions is of another kind");
	/* A later Go, an older one, or somebody's own. */
	dso->base.unknown = told && !go_knows(1, go_minor(version));
	if (about && dso->base.unknown)
		about->lost = "labels of its goroutines are not shown, nor who has started them";
	dso->base.ops = runtimes[RUNTIME_GO];
	*ret = &dso->base;
	return 0;
}

static void go_dso_free(struct runtime_dso *dso)
{
	go_file_free((struct go_dso *)dso);
}

/* What the process says of the Go that made it; "" if nothing that makes sense. */
static int read_version(const struct go_dso *dso, const struct runtime_target *t,
			char ret[static GO_VERSION_MAX + 1])
{
	uint8_t info[INFO_SIZE];
	uint64_t text[2];
	int r;

	memset(ret, 0, GO_VERSION_MAX + 1);
	if (!dso->build_info)
		return 0;
	r = runtime_read(t, dso->build_info + t->bias, info, sizeof(info));
	if (r || parse_info(info, ret, &text[0]))
		return r;
	if (!text[0])
		return 0;
	r = runtime_read(t, text[0], text, sizeof(text));
	if (r)
		return r;
	return text[1] > GO_VERSION_MAX ? 0 : runtime_read(t, text[0], ret, text[1]);
}

/* How this process's threads get at their g; without that it has neither labels nor creators. */
static int set_tls(const struct go_dso *dso, const struct runtime_target *t, struct go_record *to)
{
	int r = 0;

	to->tls = dso->tls.offset;
	if (dso->tls.slot)
		r = runtime_read(t, dso->tls.slot + t->bias, &to->tls, sizeof(to->tls));
	if (dso->tls.known && to->tls)
		to->flags |= GO_TLS;
	if (t->machine == EM_AARCH64)
		to->flags |= GO_REGISTER;
	return r;
}

static struct go_switch in_memory(struct go_switch s, uint64_t bias)
{
	return s.end ? (struct go_switch){ s.start + bias, s.end + bias } : s;
}

static struct go_part part_of(const struct go_dso *dso, struct go_switch s)
{
	if (!s.end || s.end - dso->code.start > UINT32_MAX)
		return (struct go_part){ 0 };
	return (struct go_part){ (uint32_t)(s.start - dso->code.start),
				 (uint32_t)(s.end - dso->code.start) };
}

static void set_switches(const struct go_dso *dso, const struct runtime_target *t,
			 struct go_record *to)
{
	to->code = in_memory(dso->code, t->bias);
	to->morestack = in_memory(dso->morestack, t->bias);
	to->schedule = in_memory(dso->schedule, t->bias);
	to->mcall = in_memory(dso->mcall, t->bias);
	for (size_t i = 0; i < GO_INJECTED; i++)
		to->injected[i] = part_of(dso, dso->injected[i]);
	to->systemstack = in_memory(dso->systemstack, t->bias);
	to->asmcgocall = in_memory(dso->asmcgocall, t->bias);
	to->nosave = part_of(dso, dso->nosave);
	to->cgocallback = part_of(dso, dso->cgocallback);
	if (dso->asmcgocall_call && !dso->strange)
		to->own_call = (uint16_t)(dso->asmcgocall_call - dso->asmcgocall.start);
	to->flags |= dso->pushes ? GO_PUSHES : 0;
}

static int go_attach(const struct runtime_dso *base, const struct runtime_target *t, void *record,
		     struct runtime_proc **ret)
{
	const struct go_dso *dso = (const struct go_dso *)base;
	char version[GO_VERSION_MAX + 1];
	struct go_record *to = record;
	struct runtime_proc *rp;
	int r = read_version(dso, t, version);

	if (!r && go_layout(dso->minor ? dso->minor : go_minor(version), to))
		r = set_tls(dso, t, to);
	set_switches(dso, t, to);
	if (r)
		return r;
	if (t->options.async)
		to->flags |= GO_ASYNC;
	if (t->options.no_labels)
		to->labels = 0;
	rp = calloc(1, sizeof(*rp));
	if (!rp)
		return -ENOMEM;
	*rp = (struct runtime_proc){ .ops = base->ops, .dso = base, .target = t };
	if (*version)
		runtime_is_version(t->about, "%s", version);
	log_debug("process %d: %s: g at %lld%s", t->pid, *version ? version : "Go",
		  (long long)to->tls, to->flags & GO_TLS ? "" : ", not known");
	*ret = rp;
	return 0;
}

static void go_detach(struct runtime_proc *rp)
{
	free(rp);
}

/* Its frames are native ones. */
static int go_symbolize(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			const struct runtime_sink *sink)
{
	(void)rp;
	(void)words;
	(void)nr;
	(void)sink;
	return -EINVAL;
}

static bool go_label(const uint64_t *words, size_t nr, struct runtime_label *ret)
{
	uint64_t data = FRAME_DATA(words[0]);

	if (nr != 1 + GO_LABEL_WORDS)
		return false;
	go_text((const uint8_t *)&words[1], GO_KEY_SIZE, GO_LABEL_KEY(data), ret->key);
	go_text((const uint8_t *)&words[1 + GO_KEY_SIZE / 8], GO_TEXT_SIZE, GO_LABEL_TEXT(data),
		ret->text);
	return true;
}

const struct runtime_ops go_runtime = {
	.name = "go",
	.id = RUNTIME_GO,
	.label = "go",
	.language = "Go",
	.record_size = sizeof(struct go_record),
	.knows = go_knows,
	.product = "go",
	.probe = go_probe,
	.dso_free = go_dso_free,
	.hides = go_hides,
	.attach = go_attach,
	.detach = go_detach,
	.symbolize = go_symbolize,
	.sample_label = go_label,
};
