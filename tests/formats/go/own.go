// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	v19 "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

var kept [][]byte

// What this process has had of the CPU: however busy the machine is, there is enough to sample.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

//go:noinline
func spin(length time.Duration) (n int) {
	for until := cpuTime() + length; cpuTime() < until; {
		for i := 0; i < 100000; i++ {
			n += i * i
		}
	}
	return n
}

// Most of it in the kernel.
func readZeros(length time.Duration) error {
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		return err
	}
	defer zeros.Close()
	buf := make([]byte, 1<<20)
	for until := cpuTime() + length; err == nil && cpuTime() < until; {
		_, err = zeros.Read(buf)
	}
	return err
}

//go:noinline
func allocate() {
	for i := 0; i < 64; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
}

// Uses the CPU for so long, and then the kernel: something to record.
func burn(seconds string) error {
	n, err := strconv.ParseFloat(seconds, 64)
	if err == nil {
		spin(time.Duration(n * float64(time.Second)))
		err = readZeros(100 * time.Millisecond)
	}
	return err
}

// A fifth of a CPU, in pieces that hold a sample each at 199 Hz, and three of them and more in a tenth of a second.
func simmer(seconds string) error {
	const work, rest = 6 * time.Millisecond, 24 * time.Millisecond
	n, err := strconv.ParseFloat(seconds, 64)
	if err == nil {
		for until := cpuTime() + time.Duration(n*float64(time.Second)); cpuTime() < until; time.Sleep(rest) {
			spin(work)
		}
	}
	return err
}

// A CPU profile and a heap profile of this program, as Go's runtime writes them.
func writeOwn(cpuPath, heapPath string) error {
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		return err
	}
	pprof.Do(context.Background(), pprof.Labels("thread", "spinner", "tid", "77"), func(context.Context) {
		spin(700 * time.Millisecond)
	})
	spin(300 * time.Millisecond)
	pprof.StopCPUProfile()
	allocate()
	runtime.GC()
	if err := os.WriteFile(cpuPath, cpu.Bytes(), 0o644); err != nil {
		return err
	}
	heap, err := os.Create(heapPath)
	if err != nil {
		return err
	}
	defer heap.Close()
	return pprof.Lookup("heap").WriteTo(heap, 0)
}

// The stacks of anybody's pprof, by the type that pprof would show.
func foldForeign(path string) error {
	p, err := readPprof(path)
	if err != nil {
		return err
	}
	value := len(p.SampleType) - 1
	for i, t := range p.SampleType {
		if t.Type == p.DefaultSampleType {
			value = i
		}
		if t.Type == "samples" && p.SampleType[value].Type == "cpu" {
			value = i // the same, in samples
			break
		}
	}
	out := folded{}
	for _, s := range p.Sample {
		if s.Value[value] == 0 {
			continue
		}
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, pprofFrames(l)...)
		}
		comm := baseName(p.Mapping[0].File)
		if threads := s.Label["thread"]; len(threads) == 1 {
			comm = threads[0]
		}
		out.add(comm, frames, s.Value[value])
	}
	out.print()
	return nil
}

// A request as the collector's library writes it: keys and values of resources by reference.
func writeRequest(path string) error {
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(goodRequest())
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// A request of schema 1.9: "f;leaf" by the thread "old", 5 times.
func writeOld(path string) error {
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	data, err := proto.Marshal(&v19.ProfilesData{
		ResourceProfiles: []*v19.ResourceProfiles{{
			Resource: &resource.Resource{Attributes: []*common.KeyValue{
				{Key: "service.name", Value: text("old service")},
			}},
			ScopeProfiles: []*v19.ScopeProfiles{{Profiles: []*v19.Profile{{
				SampleType:   &v19.ValueType{TypeStrindex: 1, UnitStrindex: 2},
				TimeUnixNano: 5000000000,
				DurationNano: 1000000000,
				Samples: []*v19.Sample{
					{StackIndex: 1, AttributeIndices: []int32{1}, Values: []int64{2}},
					{StackIndex: 1, AttributeIndices: []int32{1}, Values: []int64{3}},
				},
			}}}},
		}},
		Dictionary: &v19.ProfilesDictionary{
			StringTable:   []string{"", "samples", "count", "leaf", "f", "thread.name"},
			MappingTable:  []*v19.Mapping{{}},
			FunctionTable: []*v19.Function{{}, {NameStrindex: 3}, {NameStrindex: 4}},
			LocationTable: []*v19.Location{{}, {Lines: []*v19.Line{{FunctionIndex: 1}}},
				{Lines: []*v19.Line{{FunctionIndex: 2}}}},
			StackTable:     []*v19.Stack{{}, {LocationIndices: []int32{1, 2}}},
			LinkTable:      []*v19.Link{{}},
			AttributeTable: []*v19.KeyValueAndUnit{{}, {KeyStrindex: 5, Value: text("old")}},
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// What the schema's own code, as it was then, finds in a request: how many samples, none of which
// has what it does not know, and how many profiles say that they have what is new.
func countOld(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	request := &v19.ProfilesData{}
	if err := proto.Unmarshal(data, request); err != nil {
		return err
	}
	d, total, deltas := request.Dictionary, 0, 0
	for _, resource := range request.ResourceProfiles {
		for _, scope := range resource.ScopeProfiles {
			for _, p := range scope.Profiles {
				counts := d.StringTable[p.SampleType.TypeStrindex] == "samples"
				// Schema 1.8 had a field for it: 1, delta.
				if bytes.Equal(p.SampleType.ProtoReflect().GetUnknown(), []byte{3 << 3, 1}) {
					deltas++
				}
				for _, s := range p.Samples {
					if len(s.ProtoReflect().GetUnknown()) > 0 || s.StackIndex <= 0 || int(s.StackIndex) >= len(d.StackTable) {
						return fmt.Errorf("a sample is %v", s)
					}
					keys := map[string]bool{}
					for _, i := range s.AttributeIndices {
						if i <= 0 || int(i) >= len(d.AttributeTable) {
							return fmt.Errorf("attribute %d", i)
						}
						keys[d.StringTable[d.AttributeTable[i].KeyStrindex]] = true
					}
					if !keys["thread.id"] || !keys["thread.name"] {
						return fmt.Errorf("a sample has the attributes %v", keys)
					}
					if n := len(s.TimestampsUnixNano); len(s.Values) != n && (n > 0 && len(s.Values) > 0 || n == 0 && len(s.Values) != 1) {
						return fmt.Errorf("%d values at %d times", len(s.Values), len(s.TimestampsUnixNano))
					}
					if counts {
						total += len(s.TimestampsUnixNano)
					}
				}
			}
		}
	}
	fmt.Println(total, deltas)
	return nil
}
