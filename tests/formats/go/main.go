// SPDX-License-Identifier: Apache-2.0

// Profcheck reads profiles with libraries that are not ours: Google's pprof and the OpenTelemetry
// collector's pdata. It checks what each format demands and prints the stacks as folded lines.
//
//	profcheck pprof FILE
//	profcheck otlp FILE
//	profcheck resources FILE  each resource of an OTLP request as a line of JSON
//	profcheck places FILE     for each of them, which files, functions, threads, types and CPUs its samples have
//	profcheck foreign FILE    the stacks of a pprof profile that is not ours
//	profcheck own CPU HEAP    writes what Go's runtime says of this program
//	profcheck request FILE    writes a small request as the collector's library does
//	profcheck old FILE        writes a small request of schema 1.9
//	profcheck samples-of-old FILE  how many samples are in a request of schema 1.9 or 1.8, and how many profiles are deltas
//	profcheck burn SECONDS    is something to record
//	profcheck simmer SECONDS  the same, which leaves the CPU to others most of the time
//	profcheck selftest    each rule of OTLP finds what is wrong with a request that breaks it
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: profcheck COMMAND [FILE...]; see main.go")
		os.Exit(2)
	}
	var err error
	switch {
	case os.Args[1] == "pprof" && len(os.Args) == 3:
		err = checkPprof(os.Args[2])
	case os.Args[1] == "otlp" && len(os.Args) == 3:
		err = checkOtlp(os.Args[2])
	case os.Args[1] == "resources" && len(os.Args) == 3:
		err = printResources(os.Args[2])
	case os.Args[1] == "places" && len(os.Args) == 3:
		err = printPlaces(os.Args[2])
	case os.Args[1] == "foreign" && len(os.Args) == 3:
		err = foldForeign(os.Args[2])
	case os.Args[1] == "own" && len(os.Args) == 4:
		err = writeOwn(os.Args[2], os.Args[3])
	case os.Args[1] == "request" && len(os.Args) == 3:
		err = writeRequest(os.Args[2])
	case os.Args[1] == "old" && len(os.Args) == 3:
		err = writeOld(os.Args[2])
	case os.Args[1] == "samples-of-old" && len(os.Args) == 3:
		err = countOld(os.Args[2])
	case os.Args[1] == "burn" && len(os.Args) == 3:
		err = burn(os.Args[2])
	case os.Args[1] == "simmer" && len(os.Args) == 3:
		err = simmer(os.Args[2])
	case os.Args[1] == "selftest":
		err = selfTest()
	default:
		err = fmt.Errorf("no such check")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profcheck:", err)
		os.Exit(1)
	}
}

// A stack and how often, as Sonde's folded format has them: docs/formats/folded.md.
type folded map[string]int64

func cleanName(s string) string { return strings.ReplaceAll(s, ";", ":") }

func cleanComm(s string) string {
	if s == "" {
		return "[no_name]"
	}
	return strings.ReplaceAll(cleanName(s), " ", "_")
}

func baseName(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 && i+1 < len(path) {
		return path[i+1:]
	}
	return path
}

// The label of an address that has no name.
func unnamed(path string, kernel bool, address uint64) string {
	name := baseName(path)
	switch {
	case name == "[anon]":
		return name
	case name == "[kernel.kallsyms]" || (name == "" && kernel):
		name = "kernel"
	case name == "":
		name = "unknown"
	case strings.HasPrefix(name, "["):
		name = strings.Trim(name, "[]")
	}
	return fmt.Sprintf("[%s+0x%x]", name, address)
}

// Frames are the leaf first.
func (f folded) add(comm string, frames []string, count int64) {
	line := cleanComm(comm)
	for i := len(frames) - 1; i >= 0; i-- {
		line += ";" + frames[i]
	}
	f[line] += count
}

// One location's functions, the innermost first.
func labels(names []string, kernel bool) []string {
	var out []string
	for i, name := range names {
		label := cleanName(name)
		if i+1 < len(names) {
			label += "_[i]"
		} else if kernel {
			label += "_[k]"
		}
		out = append(out, label)
	}
	return out
}

func (f folded) print() {
	var lines []string
	for line, count := range f {
		lines = append(lines, fmt.Sprintf("%s %d", line, count))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}
