// SPDX-License-Identifier: Apache-2.0

// A load of 20 Go frames: main.main, f1 to f18, and leaf, which computes. `chain FILE`: the number of leaves done stands in
// FILE, 8 bytes.
package main

import (
	"encoding/binary"
	"os"
)

//go:noinline
func leaf(n uint32) uint32 {
	x := uint32(0)
	for i := uint32(0); i < n; i++ {
		x = (x*31 + i) & 0xffff
	}
	return x
}

//go:noinline
func f1(n uint32) uint32 { return f2(n) + 1 }

//go:noinline
func f2(n uint32) uint32 { return f3(n) + 1 }

//go:noinline
func f3(n uint32) uint32 { return f4(n) + 1 }

//go:noinline
func f4(n uint32) uint32 { return f5(n) + 1 }

//go:noinline
func f5(n uint32) uint32 { return f6(n) + 1 }

//go:noinline
func f6(n uint32) uint32 { return f7(n) + 1 }

//go:noinline
func f7(n uint32) uint32 { return f8(n) + 1 }

//go:noinline
func f8(n uint32) uint32 { return f9(n) + 1 }

//go:noinline
func f9(n uint32) uint32 { return f10(n) + 1 }

//go:noinline
func f10(n uint32) uint32 { return f11(n) + 1 }

//go:noinline
func f11(n uint32) uint32 { return f12(n) + 1 }

//go:noinline
func f12(n uint32) uint32 { return f13(n) + 1 }

//go:noinline
func f13(n uint32) uint32 { return f14(n) + 1 }

//go:noinline
func f14(n uint32) uint32 { return f15(n) + 1 }

//go:noinline
func f15(n uint32) uint32 { return f16(n) + 1 }

//go:noinline
func f16(n uint32) uint32 { return f17(n) + 1 }

//go:noinline
func f17(n uint32) uint32 { return f18(n) + 1 }

//go:noinline
func f18(n uint32) uint32 { return leaf(n) + 1 }

var sink uint32

func main() {
	progress, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	bytes := make([]byte, 8)
	for done := uint64(1); ; done++ {
		for i := 0; i < 10; i++ {
			sink += f1(300000)
		}
		binary.LittleEndian.PutUint64(bytes, done)
		if _, err := progress.WriteAt(bytes, 0); err != nil {
			panic(err)
		}
	}
}
