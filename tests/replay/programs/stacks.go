// SPDX-License-Identifier: Apache-2.0
// Goroutines with stacks worth keeping, for every Go. Prints "ready" when they are there, and works until it is killed:
// one works for two labels, another, which that one has started, inherits them.
package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sort"
	"sync"
)

var (
	ready sync.WaitGroup
	spun  uint64
)

//go:noinline
func leaf() bool {
	ready.Done()
	for n := uint64(1); ; n = n*6364136223846793005 + 1 {
		if n == 0 {
			spun++
		}
	}
}

type by []int

func (b by) Len() int           { return len(b) }
func (b by) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b by) Less(i, j int) bool { return leaf() }

//go:noinline
func deep(n int) {
	if n == 0 {
		sort.Sort(by{2, 1})
	}
	deep(n - 1)
	spun++
}

func labelled(context.Context) {
	go func() {
		runtime.LockOSThread()
		leaf()
	}()
	deep(5)
}

func main() {
	runtime.GOMAXPROCS(4)
	ready.Add(2)
	go func() {
		runtime.LockOSThread()
		pprof.Do(context.Background(), pprof.Labels("request", "r-1", "of", "größe"), labelled)
	}()
	ready.Wait()
	fmt.Println("ready")
	select {}
}
