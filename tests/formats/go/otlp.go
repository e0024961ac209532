// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func readOtlp(path string) (pprofile.Profiles, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
}

// The names of a resource's profiles' files, functions, threads and frame types, and the numbers of threads and CPUs.
func placesOf(d pprofile.ProfilesDictionary, scopes pprofile.ScopeProfilesSlice) map[string]any {
	sets := map[string]map[string]bool{"files": {}, "functions": {}, "threads": {}, "kinds": {}, "types": {}, "tids": {}, "cpus": {}}
	stacks := map[int32]bool{}
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, scope := range scopes.All() {
		for _, p := range scope.Profiles().All() {
			sets["types"][text(p.SampleType().TypeStrindex())] = true
			for _, s := range p.Samples().All() {
				stacks[s.StackIndex()] = true
				sets["threads"][attribute(d, s.AttributeIndices(), "thread.name")] = true
				sets["tids"][attribute(d, s.AttributeIndices(), "thread.id")] = true
				sets["cpus"][attribute(d, s.AttributeIndices(), "cpu.logical_number")] = true
			}
		}
	}
	for stack := range stacks {
		for _, i := range d.StackTable().At(int(stack)).LocationIndices().All() {
			l := d.LocationTable().At(int(i))
			sets["files"][text(d.MappingTable().At(int(l.MappingIndex())).FilenameStrindex())] = true
			sets["kinds"][attribute(d, l.AttributeIndices(), "profile.frame.type")] = true
			for _, line := range l.Lines().All() {
				sets["functions"][text(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())] = true
			}
		}
	}
	out := map[string]any{}
	for name, set := range sets {
		list := []string{}
		for entry := range set {
			list = append(list, entry)
		}
		sort.Strings(list)
		out[name] = list
	}
	return out
}

// {"attributes": {...}, "files": [...], "functions": [...], "threads": [...], "kinds": [...], "types": [...], "tids": [...], "cpus": [...]}: a line a resource.
func printPlaces(path string) error {
	request, err := readOtlp(path)
	if err != nil {
		return err
	}
	for _, resource := range request.ResourceProfiles().All() {
		places := placesOf(request.Dictionary(), resource.ScopeProfiles())
		places["attributes"] = resource.Resource().Attributes().AsRaw()
		line, err := json.Marshal(places)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// The first and the last of the times, and this one.
func extremes(times []uint64, t uint64) []uint64 {
	if len(times) == 0 {
		return []uint64{t, t}
	}
	return []uint64{min(times[0], t), max(times[1], t)}
}

// {"attributes": {...}, "time": ..., "duration": ..., "samples": ..., "times": [first, last], "period": ...}: of the first profile.
func printResources(path string) error {
	request, err := readOtlp(path)
	if err != nil {
		return err
	}
	for _, resource := range request.ResourceProfiles().All() {
		profiles := resource.ScopeProfiles().At(0).Profiles()
		p := profiles.At(0)
		samples := 0
		times := []uint64{}
		for _, counted := range profiles.All() {
			if request.Dictionary().StringTable().At(int(counted.SampleType().TypeStrindex())) != "samples" {
				continue
			}
			for _, s := range counted.Samples().All() {
				samples += s.TimestampsUnixNano().Len()
				for _, t := range s.TimestampsUnixNano().All() {
					times = extremes(times, t)
				}
			}
		}
		line, err := json.Marshal(map[string]any{
			"attributes": resource.Resource().Attributes().AsRaw(),
			"time":       p.Time(), "duration": p.DurationNano(), "samples": samples, "period": p.Period(), "times": times,
		})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func checkOtlp(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := checkWire(data); err != nil {
		return err
	}
	request, err := readOtlp(path)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if err := rule.check(request); err != nil {
			return fmt.Errorf("%s: %w", rule.name, err)
		}
	}
	out := folded{}
	first := int32(-1)
	for _, p := range profilesOf(request) {
		// Of samples of several types those that folded stacks have.
		if first < 0 {
			first = p.SampleType().TypeStrindex()
		}
		if p.SampleType().TypeStrindex() != first {
			continue
		}
		for _, s := range p.Samples().All() {
			out.addSample(request.Dictionary(), s)
		}
	}
	out.print()
	return nil
}

func profilesOf(request pprofile.Profiles) []pprofile.Profile {
	var all []pprofile.Profile
	for _, resource := range request.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			for _, p := range scope.Profiles().All() {
				all = append(all, p)
			}
		}
	}
	return all
}

func attribute(d pprofile.ProfilesDictionary, indices pcommon.Int32Slice, key string) string {
	for _, i := range indices.All() {
		a := d.AttributeTable().At(int(i))
		if d.StringTable().At(int(a.KeyStrindex())) == key {
			return a.Value().AsString()
		}
	}
	return ""
}

func (f folded) addSample(d pprofile.ProfilesDictionary, s pprofile.Sample) {
	var frames []string
	for _, i := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
		frames = append(frames, otlpFrames(d, d.LocationTable().At(int(i)))...)
	}
	count := int64(s.TimestampsUnixNano().Len())
	if s.Values().Len() > 0 {
		count = 0
		for _, value := range s.Values().All() {
			count += value
		}
	}
	f.add(attribute(d, s.AttributeIndices(), "thread.name"), frames, count)
}

func otlpFrames(d pprofile.ProfilesDictionary, l pprofile.Location) []string {
	kernel := attribute(d, l.AttributeIndices(), "profile.frame.type") == "kernel"
	var names []string
	for _, line := range l.Lines().All() {
		name := d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()
		names = append(names, d.StringTable().At(int(name)))
	}
	if len(names) == 0 {
		path := d.MappingTable().At(int(l.MappingIndex())).FilenameStrindex()
		names = []string{unnamed(d.StringTable().At(int(path)), kernel, l.Address())}
	}
	return labels(names, kernel)
}
