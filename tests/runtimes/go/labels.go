// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"
)

// Names that say which labels are set while they run: the test looks at both.

//go:noinline
func spin(until time.Duration) {
	for end := time.Now().Add(until); time.Now().Before(end); {
		for i := uint64(0); i < 10000; i++ {
			if i*i == 77 {
				spun++
			}
		}
	}
}

//go:noinline
func withOne() { spin(time.Millisecond) }

//go:noinline
func withMany() { spin(time.Millisecond) }

//go:noinline
func without() { spin(time.Millisecond) }

//go:noinline
func inherited(done chan bool) {
	spin(time.Millisecond)
	done <- true
}

// Labels of distinct texts, in memory that is used again and again; garbage beside.
func labels() {
	ctx := context.Background()
	many := []string{}
	for i := 0; i < 7; i++ {
		many = append(many, fmt.Sprintf("key%d", i), strings.Repeat("x", i*20))
	}
	fmt.Printf("{\"ready\": %d}\n", os.Getpid())
	for n := 0; ; n++ {
		request := fmt.Sprintf("request-%d", n%1000)
		pprof.Do(ctx, pprof.Labels("of", "one", "request", request), func(ctx context.Context) {
			withOne()
			done := make(chan bool)
			go inherited(done)
			<-done
		})
		pprof.Do(ctx, pprof.Labels(append(many, "of", "many")...), func(ctx context.Context) { withMany() })
		without()
	}
}
