// SPDX-License-Identifier: Apache-2.0
// Chains of Go functions that say of themselves what they are: see ../runtimes.py. Each case runs on a
// thread of its own, which has its name, and stays in its leaf. With the argument "labels" or "grow": see labels.go, grow.go.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

type truth struct {
	Comm    string  `json:"comm"`
	Chain   [][]interface{} `json:"chain"`
	Creator []interface{}   `json:"creator"` // name, file, line of who has started the goroutine
}

var (
	mutex sync.Mutex
	told  sync.WaitGroup
	spun  uint64
)

// Who has started this goroutine, as a panic's text has it.
func creator() []interface{} {
	text := make([]byte, 1<<16)
	lines := strings.Split(strings.TrimSpace(string(text[:runtime.Stack(text, false)])), "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[len(lines)-2], "created by ") {
		return nil
	}
	name := strings.Fields(lines[len(lines)-2])[2]
	place := strings.Fields(lines[len(lines)-1])[0]
	colon := strings.LastIndex(place, ":")
	line, _ := strconv.Atoi(place[colon+1:])
	return []interface{}{name, place[:colon], line}
}

// What the runtime says that its caller's chain is, outermost first.
func tell(comm string) {
	pcs := make([]uintptr, 1000)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	said := truth{Comm: comm, Creator: creator()}
	for {
		frame, more := frames.Next()
		entry := []interface{}{frame.Function, frame.File, frame.Line}
		said.Chain = append([][]interface{}{entry}, said.Chain...)
		if !more {
			break
		}
	}
	mutex.Lock()
	line, _ := json.Marshal(said)
	fmt.Println(string(line))
	mutex.Unlock()
	told.Done()
}

// Begins a case: this goroutine keeps its thread.
func name(comm string) {
	runtime.LockOSThread()
	text, _ := syscall.BytePtrFromString(comm)
	syscall.RawSyscall(syscall.SYS_PRCTL, 15, uintptr(unsafe.Pointer(text)), 0)
}

//go:noinline
func leaf(comm string) {
	tell(comm)
	var n uint64
	for {
		n = n*6364136223846793005 + 1
		if n == 0 {
			spun++
		}
	}
}

func inner(comm string) { leaf(comm) }

func inlined(comm string) {
	inner(comm)
}

//go:noinline
func outer(comm string) {
	inlined(comm)
	spun++
}

type worker interface{ work(comm string) }
type point struct{ x, y int }

//go:noinline
func (p point) work(comm string) {
	leaf(comm)
	spun += uint64(p.x)
}

//go:noinline
func deep(n int, comm string) {
	if n == 0 {
		leaf(comm)
	}
	deep(n-1, comm)
	spun++
}

//go:noinline
func large(comm string) byte {
	var room [20000]byte
	outer(comm)
	return room[spun%20000]
}

type by []int

func (b by) Len() int           { return len(b) }
func (b by) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b by) Less(i, j int) bool { leaf("go-sort"); return b[i] < b[j] }

func after(comm string) {
	recover()
	leaf(comm)
}

func panics(comm string) {
	defer after(comm)
	var nowhere *point
	spun += uint64(nowhere.x)
}

func cases() map[string]func(string) {
	return map[string]func(string){
		"go-plain":   func(c string) { outer(c) },
		"go-method":  func(c string) { worker(point{1, 2}).work(c) },
		"go-wrapped": func(c string) { worker(&point{1, 2}).work(c) },
		"go-deep":    func(c string) { deep(60, c) },
		"go-large":   func(c string) { large(c) },
		"go-sort":    func(c string) { sort.Sort(by{3, 1, 2}) },
		"go-panic":   func(c string) { panics(c) },
		"go-strings": func(c string) {
			strings.Map(func(r rune) rune { leaf(c); return r }, "abc")
		},
	}
}

func main() { run() }

func run() {
	if os.Args[len(os.Args)-1] == "labels" {
		labels()
	}
	if os.Args[len(os.Args)-1] == "grow" {
		grow()
	}
	all := cases()
	for comm, f := range more {
		all[comm] = f
	}
	runtime.GOMAXPROCS(len(all) + 2)
	told.Add(len(all))
	for comm, f := range all {
		go func(comm string, f func(string)) {
			name(comm)
			f(comm)
		}(comm, f)
	}
	told.Wait()
	fmt.Printf("{\"ready\": %d}\n", os.Getpid())
	select {}
}
