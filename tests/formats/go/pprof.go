// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/pprof/profile"
)

func isKernel(m *profile.Mapping) bool {
	if m == nil || !strings.HasPrefix(m.File, "[") {
		return false
	}
	for _, user := range []string{"[anon]", "[vdso]", "[vsyscall]", "[unknown]", "[python]", "[hotspot]"} {
		if m.File == user {
			return false
		}
	}
	return true
}

func pprofFrames(l *profile.Location) []string {
	path := ""
	if l.Mapping != nil {
		path = l.Mapping.File
	}
	var names []string
	for _, line := range l.Line {
		names = append(names, line.Function.Name)
	}
	if len(names) == 0 {
		names = []string{unnamed(path, isKernel(l.Mapping), l.Address)}
	}
	// A mapping that stands for a runtime's functions: this one is gone.
	if len(l.Line) == 0 && (path == "[python]" || path == "[hotspot]") {
		names = []string{strings.Replace(path, "]", ": unknown]", 1)}
	}
	return labels(names, isKernel(l.Mapping))
}

// What pprof's CheckValid leaves open, and docs/formats/pprof.md promises.
func checkConventions(p *profile.Profile) error {
	// pprof numbers the functions that it finds itself from len(p.Function) + 1 on.
	for _, f := range p.Function {
		if f.ID > uint64(len(p.Function)) {
			return fmt.Errorf("function %d of %d", f.ID, len(p.Function))
		}
		if f.SystemName == "" && f.Name != "" {
			return fmt.Errorf("function %q has no system name", f.Name)
		}
	}
	for _, m := range p.Mapping {
		if m.ID > uint64(len(p.Mapping)) {
			return fmt.Errorf("mapping %d of %d", m.ID, len(p.Mapping))
		}
		if m.Start > m.Limit || (m.Start == m.Limit && m.Start != 0) {
			return fmt.Errorf("mapping %s is empty or ends before it begins", m.File)
		}
	}
	flags := map[*profile.Mapping]profile.Mapping{}
	for _, l := range p.Location {
		if l.ID > uint64(len(p.Location)) {
			return fmt.Errorf("location %d of %d", l.ID, len(p.Location))
		}
		if l.IsFolded {
			return fmt.Errorf("location %d is folded", l.ID)
		}
		if l.Mapping == nil {
			continue
		}
		if m := l.Mapping; m.Limit != 0 && (l.Address < m.Start || l.Address >= m.Limit) {
			return fmt.Errorf("address %#x is not in its mapping %s", l.Address, m.File)
		}
		seen, known := flags[l.Mapping]
		if !known {
			seen = profile.Mapping{HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
		}
		seen.HasFunctions = seen.HasFunctions && len(l.Line) > 0
		seen.HasInlineFrames = seen.HasInlineFrames || len(l.Line) > 1
		if len(l.Line) == 0 {
			seen.HasFilenames, seen.HasLineNumbers = false, false
		}
		for _, line := range l.Line {
			seen.HasFilenames = seen.HasFilenames && line.Function.Filename != ""
			seen.HasLineNumbers = seen.HasLineNumbers && line.Line != 0
		}
		flags[l.Mapping] = seen
	}
	for m, want := range flags {
		if m.HasFunctions != want.HasFunctions || m.HasFilenames != want.HasFilenames ||
			m.HasLineNumbers != want.HasLineNumbers || m.HasInlineFrames != want.HasInlineFrames {
			return fmt.Errorf("flags of mapping %s are not true", m.File)
		}
	}
	return nil
}

// A profile that pprof itself finds nothing wrong with.
func readPprof(path string) (*profile.Profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	return p, p.CheckValid()
}

func checkPprof(path string) error {
	p, err := readPprof(path)
	if err != nil {
		return err
	}
	if err := checkConventions(p); err != nil {
		return err
	}
	out := folded{}
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, pprofFrames(l)...)
		}
		if s.Value[0] == 0 {
			continue // it is of another type
		}
		if len(s.Value) == 2 && p.SampleType[1].Type == "cpu" && s.Value[1] != s.Value[0]*p.Period {
			return fmt.Errorf("%d samples are %d ns at a period of %d ns", s.Value[0], s.Value[1], p.Period)
		}
		comm := ""
		if threads := s.Label["thread"]; len(threads) == 1 {
			comm = threads[0]
		}
		out.add(comm, frames, s.Value[0])
	}
	out.print()
	return nil
}
