// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A small request that keeps every rule: one process, two samples of two locations.
func goodRequest() pprofile.Profiles {
	r := pprofile.NewProfiles()
	d := r.Dictionary()
	index := map[string]int32{}
	str := func(s string) int32 {
		if _, known := index[s]; !known {
			index[s] = int32(d.StringTable().Len())
			d.StringTable().Append(s)
		}
		return index[s]
	}
	text := func(key, value string) int32 {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(str(key))
		a.Value().SetStr(value)
		return int32(d.AttributeTable().Len() - 1)
	}
	str("")
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	d.StackTable().AppendEmpty()

	m := d.MappingTable().AppendEmpty()
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x3000)
	m.SetFilenameStrindex(str("/bin/x"))
	m.AttributeIndices().Append(text("process.executable.build_id.gnu", "abcd"))
	native := text("profile.frame.type", "native")
	for i, name := range []string{"leaf", "main"} {
		f := d.FunctionTable().AppendEmpty()
		f.SetNameStrindex(str(name))
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(1)
		l.SetAddress(uint64(0x1000 + i))
		l.Lines().AppendEmpty().SetFunctionIndex(int32(i + 1))
		l.AttributeIndices().Append(native)
	}
	d.StackTable().AppendEmpty().LocationIndices().Append(1, 2)
	d.StackTable().AppendEmpty().LocationIndices().Append(2)

	resource := r.ResourceProfiles().AppendEmpty()
	resource.SetSchemaUrl("https://example.org/1")
	resource.Resource().Attributes().PutStr("service.name", "unknown_service:x")
	resource.Resource().Attributes().PutStr("process.executable.path", "/bin/x")
	resource.Resource().Attributes().PutStr("process.executable.name", "x")
	resource.Resource().Attributes().PutInt("process.pid", 7)
	scope := resource.ScopeProfiles().AppendEmpty()
	scope.SetSchemaUrl("https://example.org/1")
	scope.Scope().SetName("good")
	scope.Scope().SetVersion("1")
	p := scope.Profiles().AppendEmpty()
	p.SetTime(1000)
	p.SetDurationNano(100)
	p.SampleType().SetTypeStrindex(str("samples"))
	p.SampleType().SetUnitStrindex(str("count"))
	thread := text("thread.name", "x")
	for i := 0; i < 2; i++ {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(i + 1))
		s.AttributeIndices().Append(thread)
		s.TimestampsUnixNano().Append(uint64(1000 + i))
	}
	return r
}

// For each rule, a request that breaks it.
var broken = []struct {
	rule  string
	spoil func(r pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile)
}{
	{"references", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).SetStackIndex(9)
	}},
	{"references", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).AttributeIndices().SetAt(0, -1)
	}},
	{"index-0", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.MappingTable().At(0).SetMemoryLimit(1)
	}},
	{"index-0", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.FunctionTable().At(0).SetNameStrindex(1)
	}},
	{"empty-link-0", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.LinkTable().At(0).SetSpanID([8]byte{1})
	}},
	{"no-duplicates", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		d.StackTable().At(2).LocationIndices().FromRaw([]int32{1, 2})
	}},
	{"no-duplicates", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		d.FunctionTable().At(2).SetNameStrindex(d.FunctionTable().At(1).NameStrindex())
	}},
	{"no-orphans", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StringTable().Append("nobody's")
	}},
	{"no-orphans", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StackTable().AppendEmpty().LocationIndices().Append(1)
	}},
	{"unique-keys", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(d.AttributeTable().At(3).KeyStrindex())
		a.Value().SetStr("y")
		p.Samples().At(0).AttributeIndices().Append(int32(d.AttributeTable().Len() - 1))
	}},
	{"values-or-times", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).TimestampsUnixNano().FromRaw(nil)
	}},
	{"values-or-times", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).Values().Append(1, 2)
	}},
	{"same-shape", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).TimestampsUnixNano().FromRaw(nil)
		p.Samples().At(0).Values().Append(1)
	}},
	{"merged-identity", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).CopyTo(p.Samples().AppendEmpty())
	}},
	{"times-in-profile", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).TimestampsUnixNano().SetAt(0, 1100) // the end is exclusive
	}},
	{"times-in-profile", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.Samples().At(0).TimestampsUnixNano().SetAt(0, 999)
	}},
	{"mapping-range", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.MappingTable().At(1).SetMemoryLimit(0x1000)
	}},
	{"address-in-mapping", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.LocationTable().At(1).SetAddress(0x3000)
	}},
	{"mapping-has-build-id", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StringTable().SetAt(int(d.AttributeTable().At(1).KeyStrindex()), "process.executable.build_id.other")
	}},
	{"mapping-has-build-id", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.AttributeTable().At(1).Value().SetStr("ABCD")
	}},
	{"frame-type", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.AttributeTable().At(2).Value().SetStr("unknown")
	}},
	{"inline-keys", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).Resource().Attributes().PutStr("", "x")
	}},
	{"inline-keys", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("host.name")
	}},
	{"no-code-attributes", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StringTable().SetAt(int(d.AttributeTable().At(3).KeyStrindex()), "code.function.name")
	}},
	{"no-code-attributes", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).Resource().Attributes().PutStr("code.file.path", "x.c")
	}},
	{"sample-type", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		d.MappingTable().At(1).SetFilenameStrindex(p.SampleType().UnitStrindex())
		d.FunctionTable().At(1).SetFilenameStrindex(1)
		p.SampleType().SetUnitStrindex(0)
	}},
	{"period", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.SetPeriod(7)
	}},
	{"period", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.SetPeriod(7)
		p.SampleType().CopyTo(p.PeriodType())
	}},
	{"attribute-types", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.AttributeTable().At(3).Value().SetInt(7)
	}},
	{"attribute-types", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StringTable().SetAt(int(d.AttributeTable().At(3).KeyStrindex()), "thread.id")
		d.AttributeTable().At(3).Value().SetInt(0)
	}},
	{"links", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		d.LinkTable().AppendEmpty().SetSpanID([8]byte{1})
		p.Samples().At(0).SetLinkIndex(1)
	}},
	{"payload", func(_ pprofile.Profiles, _ pprofile.ProfilesDictionary, p pprofile.Profile) {
		p.SetOriginalPayloadFormat("pprof")
	}},
	{"one-resource-a-process", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).CopyTo(r.ResourceProfiles().AppendEmpty())
	}},
	{"unique-keys", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, p pprofile.Profile) {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(d.AttributeTable().At(3).KeyStrindex())
		a.Value().SetStr("y")
		p.AttributeIndices().Append(3, int32(d.AttributeTable().Len()-1))
	}},
	{"one-schema", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).SetSchemaUrl("https://example.org/2")
	}},
	{"process-of-resource", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).Resource().Attributes().PutStr("process.pid", "7")
	}},
	{"process-of-resource", func(r pprofile.Profiles, _ pprofile.ProfilesDictionary, _ pprofile.Profile) {
		r.ResourceProfiles().At(0).Resource().Attributes().Remove("service.name")
	}},
	{"utf-8", func(_ pprofile.Profiles, d pprofile.ProfilesDictionary, _ pprofile.Profile) {
		d.StringTable().SetAt(2, "\xff")
	}},
}

func violated(r pprofile.Profiles) []string {
	var names []string
	for _, rule := range rules {
		if rule.check(r) != nil {
			names = append(names, rule.name)
			if rule.name == "references" {
				break // the others would follow them
			}
		}
	}
	return names
}

func selfTest() error {
	if names := violated(goodRequest()); len(names) > 0 {
		return fmt.Errorf("a good request breaks %v", names)
	}
	tried := map[string]bool{}
	for _, b := range broken {
		r := goodRequest()
		b.spoil(r, r.Dictionary(), profilesOf(r)[0])
		names := violated(r)
		found := false
		for _, name := range names {
			found = found || name == b.rule
		}
		if !found {
			return fmt.Errorf("%s finds nothing wrong; broken are %v", b.rule, names)
		}
		tried[b.rule] = true
	}
	for _, rule := range rules {
		if !tried[rule.name] {
			return fmt.Errorf("nothing shows that %s can fail", rule.name)
		}
	}
	if err := selfTestWire(); err != nil {
		return err
	}
	fmt.Printf("%d rules, %d requests that break them\n", len(rules)+1, len(broken)+len(brokenWire))
	return nil
}
