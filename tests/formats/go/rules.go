// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// The rules that bind a producer of OTLP profiles, schema 1.10: each is here by name, and in
// selftest.go with a request that breaks it.
type rule struct {
	name  string
	check func(pprofile.Profiles) error
}

var rules = []rule{
	{"references", checkReferences}, // first: the others follow them
	{"index-0", checkIndexZero},
	{"empty-link-0", checkLinkZero},
	{"no-duplicates", checkDuplicates},
	{"no-orphans", checkOrphans},
	{"unique-keys", checkUniqueKeys},
	{"values-or-times", checkValuesOrTimes},
	{"same-shape", checkSameShape},
	{"merged-identity", checkIdentity},
	{"times-in-profile", checkTimes},
	{"mapping-range", checkMappingRange},
	{"address-in-mapping", checkAddresses},
	{"mapping-has-build-id", checkBuildIDs},
	{"frame-type", checkFrameTypes},
	{"inline-keys", checkInlineKeys},
	{"no-code-attributes", checkCodeAttributes},
	{"sample-type", checkSampleTypes},
	{"period", checkPeriods},
	{"attribute-types", checkAttributeTypes},
	{"links", checkLinks},
	{"payload", checkPayload},
	{"one-resource-a-process", checkResources},
	{"one-schema", checkSchema},
	{"process-of-resource", checkProcess},
	{"utf-8", checkStrings},
}

func allSamples(r pprofile.Profiles, check func(p pprofile.Profile, s pprofile.Sample) error) error {
	for _, p := range profilesOf(r) {
		for _, s := range p.Samples().All() {
			if err := check(p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func ints(s pcommon.Int32Slice) string { return fmt.Sprint(s.AsRaw()) }

// Every entry of the dictionary as a text, by table.
func tables(d pprofile.ProfilesDictionary) map[string][]string {
	t := map[string][]string{}
	for _, m := range d.MappingTable().All() {
		t["mapping"] = append(t["mapping"], fmt.Sprint(m.MemoryStart(), m.MemoryLimit(), m.FileOffset(),
			m.FilenameStrindex(), ints(m.AttributeIndices())))
	}
	for _, l := range d.LocationTable().All() {
		text := fmt.Sprint(l.MappingIndex(), l.Address(), ints(l.AttributeIndices()))
		for _, line := range l.Lines().All() {
			text += fmt.Sprint(" ", line.FunctionIndex(), line.Line(), line.Column())
		}
		t["location"] = append(t["location"], text)
	}
	for _, f := range d.FunctionTable().All() {
		t["function"] = append(t["function"], fmt.Sprint(f.NameStrindex(), f.SystemNameStrindex(),
			f.FilenameStrindex(), f.StartLine()))
	}
	for _, l := range d.LinkTable().All() {
		t["link"] = append(t["link"], l.TraceID().String()+" "+l.SpanID().String())
	}
	t["string"] = d.StringTable().AsRaw()
	for _, a := range d.AttributeTable().All() {
		t["attribute"] = append(t["attribute"], fmt.Sprint(a.KeyStrindex(), a.Value().Type(),
			a.Value().AsString(), a.UnitStrindex()))
	}
	for _, s := range d.StackTable().All() {
		t["stack"] = append(t["stack"], ints(s.LocationIndices()))
	}
	return t
}

var tableNames = []string{"mapping", "location", "function", "link", "string", "attribute", "stack"}

func checkIndexZero(r pprofile.Profiles) error {
	empty := pprofile.NewProfilesDictionary()
	empty.MappingTable().AppendEmpty()
	empty.LocationTable().AppendEmpty()
	empty.FunctionTable().AppendEmpty()
	empty.LinkTable().AppendEmpty()
	empty.StringTable().Append("")
	empty.AttributeTable().AppendEmpty()
	empty.StackTable().AppendEmpty()
	have, want := tables(r.Dictionary()), tables(empty)
	for _, name := range tableNames {
		if len(have[name]) == 0 || have[name][0] != want[name][0] {
			return fmt.Errorf("the table of %ss does not begin with an empty one", name)
		}
	}
	return nil
}

func checkLinkZero(r pprofile.Profiles) error {
	if links := r.Dictionary().LinkTable(); links.Len() == 0 || !links.At(0).TraceID().IsEmpty() ||
		!links.At(0).SpanID().IsEmpty() {
		return fmt.Errorf("link 0 is not Link{}")
	}
	return nil
}

func checkDuplicates(r pprofile.Profiles) error {
	for name, entries := range tables(r.Dictionary()) {
		seen := map[string]int{}
		for i, entry := range entries {
			if first, twice := seen[entry]; twice {
				return fmt.Errorf("%ss %d and %d are the same: %s", name, first, i, entry)
			}
			seen[entry] = i
		}
	}
	return nil
}

// Calls use(table, index) for each reference that is there.
func eachReference(r pprofile.Profiles, use func(table string, index int32)) {
	d := r.Dictionary()
	attributes := func(indices pcommon.Int32Slice) {
		for _, i := range indices.All() {
			use("attribute", i)
		}
	}
	for _, m := range d.MappingTable().All() {
		use("string", m.FilenameStrindex())
		attributes(m.AttributeIndices())
	}
	for _, l := range d.LocationTable().All() {
		use("mapping", l.MappingIndex())
		attributes(l.AttributeIndices())
		for _, line := range l.Lines().All() {
			use("function", line.FunctionIndex())
		}
	}
	for _, f := range d.FunctionTable().All() {
		use("string", f.NameStrindex())
		use("string", f.SystemNameStrindex())
		use("string", f.FilenameStrindex())
	}
	for _, a := range d.AttributeTable().All() {
		use("string", a.KeyStrindex())
		use("string", a.UnitStrindex())
	}
	for _, s := range d.StackTable().All() {
		for _, i := range s.LocationIndices().All() {
			use("location", i)
		}
	}
	for _, p := range profilesOf(r) {
		for _, t := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
			use("string", t.TypeStrindex())
			use("string", t.UnitStrindex())
		}
		attributes(p.AttributeIndices())
		for _, s := range p.Samples().All() {
			use("stack", s.StackIndex())
			use("link", s.LinkIndex())
			attributes(s.AttributeIndices())
		}
	}
}

func sizes(d pprofile.ProfilesDictionary) map[string]int {
	n := map[string]int{}
	for name, entries := range tables(d) {
		n[name] = len(entries)
	}
	return n
}

func checkReferences(r pprofile.Profiles) error {
	var err error
	n := sizes(r.Dictionary())
	eachReference(r, func(table string, index int32) {
		// 0 of an empty table is for the rule of index 0 to say.
		if index < 0 || (int(index) >= n[table] && index != 0) {
			err = fmt.Errorf("there is no %s %d", table, index)
		}
	})
	return err
}

func checkOrphans(r pprofile.Profiles) error {
	used := map[string]map[int32]bool{}
	for _, name := range tableNames {
		used[name] = map[int32]bool{0: true}
	}
	eachReference(r, func(table string, index int32) { used[table][index] = true })
	for name, n := range sizes(r.Dictionary()) {
		for i := 0; i < n; i++ {
			if !used[name][int32(i)] {
				return fmt.Errorf("nothing refers to %s %d: %s", name, i, tables(r.Dictionary())[name][i])
			}
		}
	}
	return nil
}

func checkKeys(what string, attributes pcommon.Map) error {
	seen := map[string]bool{}
	for key := range attributes.All() {
		if seen[key] {
			return fmt.Errorf("a %s has two attributes %s", what, key)
		}
		seen[key] = true
	}
	return nil
}

func checkUniqueKeys(r pprofile.Profiles) error {
	d := r.Dictionary()
	check := func(what string, indices pcommon.Int32Slice) error {
		seen := map[int32]bool{}
		for _, i := range indices.All() {
			key := d.AttributeTable().At(int(i)).KeyStrindex()
			if seen[key] {
				return fmt.Errorf("a %s has two attributes %s", what, d.StringTable().At(int(key)))
			}
			seen[key] = true
		}
		return nil
	}
	for _, m := range d.MappingTable().All() {
		if err := check("mapping", m.AttributeIndices()); err != nil {
			return err
		}
	}
	for _, l := range d.LocationTable().All() {
		if err := check("location", l.AttributeIndices()); err != nil {
			return err
		}
	}
	for _, resource := range r.ResourceProfiles().All() {
		if err := checkKeys("resource", resource.Resource().Attributes()); err != nil {
			return err
		}
		for _, scope := range resource.ScopeProfiles().All() {
			if err := checkKeys("scope", scope.Scope().Attributes()); err != nil {
				return err
			}
		}
	}
	for _, p := range profilesOf(r) {
		if err := check("profile", p.AttributeIndices()); err != nil {
			return err
		}
	}
	return allSamples(r, func(_ pprofile.Profile, s pprofile.Sample) error {
		return check("sample", s.AttributeIndices())
	})
}

func checkValuesOrTimes(r pprofile.Profiles) error {
	return allSamples(r, func(_ pprofile.Profile, s pprofile.Sample) error {
		values, times := s.Values().Len(), s.TimestampsUnixNano().Len()
		if values == 0 && times == 0 {
			return fmt.Errorf("a sample has neither values nor times")
		}
		if values != 0 && times != 0 && values != times {
			return fmt.Errorf("a sample has %d values and %d times", values, times)
		}
		return nil
	})
}

func checkSameShape(r pprofile.Profiles) error {
	for _, p := range profilesOf(r) {
		shapes := map[string]bool{}
		for _, s := range p.Samples().All() {
			values, times := s.Values().Len(), s.TimestampsUnixNano().Len()
			shape := fmt.Sprint(values > 0, times > 0)
			if times == 0 && values > 1 {
				shape = "several values" // without times there is one, the sum
			}
			shapes[shape] = true
		}
		if len(shapes) > 1 || shapes["several values"] {
			return fmt.Errorf("samples of a profile are of the shapes %v", shapes)
		}
	}
	return nil
}

func checkIdentity(r pprofile.Profiles) error {
	for _, p := range profilesOf(r) {
		seen := map[string]bool{}
		for _, s := range p.Samples().All() {
			attributes := s.AttributeIndices().AsRaw()
			sort.Slice(attributes, func(i, j int) bool { return attributes[i] < attributes[j] })
			identity := fmt.Sprint(s.StackIndex(), attributes, s.LinkIndex())
			if seen[identity] {
				return fmt.Errorf("two samples are the same: %s", identity)
			}
			seen[identity] = true
		}
	}
	return nil
}

func checkTimes(r pprofile.Profiles) error {
	return allSamples(r, func(p pprofile.Profile, s pprofile.Sample) error {
		start := uint64(p.Time())
		for _, t := range s.TimestampsUnixNano().All() {
			if t < start || t >= start+p.DurationNano() {
				return fmt.Errorf("%d is not in [%d, %d)", t, start, start+p.DurationNano())
			}
		}
		return nil
	})
}

func checkMappingRange(r pprofile.Profiles) error {
	for _, m := range r.Dictionary().MappingTable().All() {
		if m.MemoryStart() >= m.MemoryLimit() && (m.MemoryStart() != 0 || m.MemoryLimit() != 0) {
			return fmt.Errorf("a mapping is [%#x, %#x)", m.MemoryStart(), m.MemoryLimit())
		}
	}
	return nil
}

func checkAddresses(r pprofile.Profiles) error {
	for _, l := range r.Dictionary().LocationTable().All() {
		m := r.Dictionary().MappingTable().At(int(l.MappingIndex()))
		if m.MemoryLimit() != 0 && (l.Address() < m.MemoryStart() || l.Address() >= m.MemoryLimit()) {
			return fmt.Errorf("%#x is not in [%#x, %#x)", l.Address(), m.MemoryStart(), m.MemoryLimit())
		}
	}
	return nil
}

var hexID = regexp.MustCompile("^([0-9a-f]{2})+$")

func checkBuildIDs(r pprofile.Profiles) error {
	d := r.Dictionary()
	for i, m := range d.MappingTable().All() {
		gnu := attribute(d, m.AttributeIndices(), "process.executable.build_id.gnu")
		goID := attribute(d, m.AttributeIndices(), "process.executable.build_id.go")
		hash := attribute(d, m.AttributeIndices(), "process.executable.build_id.htlhash")
		if i == 0 {
			continue
		}
		if gnu == "" && goID == "" && hash == "" {
			return fmt.Errorf("mapping %d has no build id", i)
		}
		if gnu != "" && !hexID.MatchString(gnu) {
			return fmt.Errorf("a GNU build id is %q", gnu)
		}
		if hash != "" && (!hexID.MatchString(hash) || len(hash) != 32) {
			return fmt.Errorf("an htlhash is %q", hash)
		}
	}
	return nil
}

var frameTypes = map[string]bool{"native": true, "kernel": true, "go": true, "rust": true, "abort-marker": true,
	"cpython": true, "jvm": true,
	"perl": true, "php": true, "ruby": true, "v8js": true, "dotnet": true, "beam": true, "luajit": true}

func checkFrameTypes(r pprofile.Profiles) error {
	d := r.Dictionary()
	for i, l := range d.LocationTable().All() {
		if kind := attribute(d, l.AttributeIndices(), "profile.frame.type"); i > 0 && !frameTypes[kind] {
			return fmt.Errorf("location %d is of the type %q", i, kind)
		}
	}
	return nil
}

func checkInlineKeys(r pprofile.Profiles) error {
	for _, resource := range r.ResourceProfiles().All() {
		for key, value := range resource.Resource().Attributes().All() {
			if key == "" || value.Type() == pcommon.ValueTypeEmpty {
				return fmt.Errorf("a resource's attribute %q has no inline key or value", key)
			}
		}
	}
	for i, a := range r.Dictionary().AttributeTable().All() {
		if i > 0 && (a.KeyStrindex() == 0 || a.Value().Type() == pcommon.ValueTypeEmpty) {
			return fmt.Errorf("attribute %d has no key or no inline value", i)
		}
	}
	return nil
}

func checkCodeAttributes(r pprofile.Profiles) error {
	d := r.Dictionary()
	for _, a := range d.AttributeTable().All() {
		if key := d.StringTable().At(int(a.KeyStrindex())); strings.HasPrefix(key, "code.") {
			return fmt.Errorf("%s must not be used in profiles", key)
		}
	}
	for _, resource := range r.ResourceProfiles().All() {
		for key := range resource.Resource().Attributes().All() {
			if strings.HasPrefix(key, "code.") {
				return fmt.Errorf("a resource has %s", key)
			}
		}
	}
	return nil
}

func checkSampleTypes(r pprofile.Profiles) error {
	for _, p := range profilesOf(r) {
		if p.SampleType().TypeStrindex() == 0 || p.SampleType().UnitStrindex() == 0 {
			return fmt.Errorf("a profile has no sample type")
		}
	}
	return nil
}

// Pyroscope multiplies samples by the period of "cpu" and takes another profile for what its period says: only samples have one.
func checkPeriods(r pprofile.Profiles) error {
	d := r.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, p := range profilesOf(r) {
		sampled := text(p.SampleType().TypeStrindex()) + "/" + text(p.SampleType().UnitStrindex())
		period := text(p.PeriodType().TypeStrindex()) + "/" + text(p.PeriodType().UnitStrindex())
		if p.Period() < 0 || (p.Period() == 0) != (period == "/") {
			return fmt.Errorf("a period of %d is of the type %s", p.Period(), period)
		}
		if p.Period() != 0 && (sampled != "samples/count" || period != "cpu/nanoseconds") {
			return fmt.Errorf("%s have the period %s", sampled, period)
		}
	}
	return nil
}

var attributeTypes = map[string]pcommon.ValueType{
	"thread.name": pcommon.ValueTypeStr, "thread.id": pcommon.ValueTypeInt, "thread.carrier.name": pcommon.ValueTypeStr,
	"cpu.logical_number": pcommon.ValueTypeInt, "profile.frame.type": pcommon.ValueTypeStr,
	"process.executable.build_id.gnu": pcommon.ValueTypeStr, "process.executable.build_id.go": pcommon.ValueTypeStr,
	"process.executable.build_id.htlhash": pcommon.ValueTypeStr,
	"pprof.mapping.has_functions":         pcommon.ValueTypeBool, "pprof.mapping.has_filenames": pcommon.ValueTypeBool,
	"pprof.mapping.has_line_numbers": pcommon.ValueTypeBool, "pprof.mapping.has_inline_frames": pcommon.ValueTypeBool,
}

func checkAttributeTypes(r pprofile.Profiles) error {
	d := r.Dictionary()
	for _, a := range d.AttributeTable().All() {
		key := d.StringTable().At(int(a.KeyStrindex()))
		if want, known := attributeTypes[key]; known && a.Value().Type() != want {
			return fmt.Errorf("%s is a %s", key, a.Value().Type())
		}
		if number := a.Value().Int(); key == "cpu.logical_number" && number < 0 || key == "thread.id" && number <= 0 {
			return fmt.Errorf("%s is %d", key, number)
		}
	}
	return nil
}

// 0 is no link; a trace has an id, a span of it may be unknown.
func checkLinks(r pprofile.Profiles) error {
	for i, l := range r.Dictionary().LinkTable().All() {
		if i > 0 && l.TraceID().IsEmpty() {
			return fmt.Errorf("link %d has no trace", i)
		}
	}
	return nil
}

// Both or neither.
func checkPayload(r pprofile.Profiles) error {
	for _, p := range profilesOf(r) {
		if (p.OriginalPayloadFormat() == "") != (p.OriginalPayload().Len() == 0) {
			return fmt.Errorf("a payload of %d bytes is %q", p.OriginalPayload().Len(), p.OriginalPayloadFormat())
		}
	}
	return nil
}

// Who reads it shall not have to add up.
func checkResources(r pprofile.Profiles) error {
	seen := map[string]bool{}
	for _, resource := range r.ResourceProfiles().All() {
		text := fmt.Sprint(resource.Resource().Attributes().AsRaw())
		if seen[text] {
			return fmt.Errorf("two resources are the same: %s", text)
		}
		seen[text] = true
	}
	return nil
}

func checkSchema(r pprofile.Profiles) error {
	for _, resource := range r.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			if resource.SchemaUrl() == "" || scope.SchemaUrl() != resource.SchemaUrl() {
				return fmt.Errorf("schema URLs are %q and %q", resource.SchemaUrl(), scope.SchemaUrl())
			}
			if scope.Scope().Name() == "" || scope.Scope().Version() == "" {
				return fmt.Errorf("a scope has no name or no version")
			}
		}
	}
	return nil
}

// Integers are integers, names are those of paths, and who has samples is a service.
func checkProcess(r pprofile.Profiles) error {
	for _, resource := range r.ResourceProfiles().All() {
		attributes := resource.Resource().Attributes()
		for _, key := range []string{"process.pid", "process.parent_pid", "process.vpid", "process.user.id"} {
			if value, ok := attributes.Get(key); ok && value.Type() != pcommon.ValueTypeInt {
				return fmt.Errorf("%s is a %s", key, value.Type())
			}
		}
		path, _ := attributes.Get("process.executable.path")
		name, ok := attributes.Get("process.executable.name")
		if ok && baseName(path.Str()) != name.Str() {
			return fmt.Errorf("the executable of %q is %q", path.Str(), name.Str())
		}
		samples := 0
		for _, scope := range resource.ScopeProfiles().All() {
			for _, p := range scope.Profiles().All() {
				samples += p.Samples().Len()
			}
		}
		if service, ok := attributes.Get("service.name"); samples > 0 && (!ok || service.Str() == "") {
			return fmt.Errorf("a resource has no service.name")
		}
	}
	return nil
}

func checkStrings(r pprofile.Profiles) error {
	for _, s := range r.Dictionary().StringTable().All() {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}
