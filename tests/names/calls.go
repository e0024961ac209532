// SPDX-License-Identifier: Apache-2.0
// Go: methods, closures, generics, inlined chains.
package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
)

var zero int

// How far the program lies from where the file says: its entry point, as the kernel says (AT_ENTRY).
func bias() uintptr {
	file, _ := elf.Open("/proc/self/exe")
	auxv, _ := os.ReadFile("/proc/self/auxv")
	for i := 0; i < len(auxv); i += 16 {
		if binary.LittleEndian.Uint64(auxv[i:]) == 9 {
			return uintptr(binary.LittleEndian.Uint64(auxv[i+8:]) - file.Entry)
		}
	}
	return 0
}

//go:noinline
func mark(name string) {
	pcs := make([]uintptr, 1)
	runtime.Callers(2, pcs)
	fmt.Printf("%s 0x%x\n", name, pcs[0]-1-bias())
}

type point struct{ x int }

//go:noinline
func (p *point) method(x int) int {
	mark("method") // @method.0 main.(*point).method
	return p.x + x
}

func leaf(x int) int {
	mark("leaf") // @leaf.0 main.leaf
	return x + 1
}

func middle(x int) int {
	return leaf(x) * 2 // @leaf.1 main.middle
}

//go:noinline
func outer(x int) int {
	return middle(x) + 1 // @leaf.2 main.outer
}

//go:noinline
func generic[T any](x T) T {
	mark("generic") // @generic.0 main.generic[go.shape.int]|main.generic[...]
	return x
}

//go:noinline
func apply(f func(int) int) int {
	return f(zero)
}

func main() {
	mark("main") // @main.0 main.main
	p := point{zero}
	p.method(1)
	outer(zero)
	generic(zero)
	apply(func(x int) int {
		mark("closure") // @closure.0 main.main.func1
		return x
	})
}
