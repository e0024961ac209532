// SPDX-License-Identifier: Apache-2.0
// Runs what a plugin has: host PLUGIN [ARGUMENT].
package main

import (
	"os"
	"plugin"
)

func main() {
	p, err := plugin.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	run, err := p.Lookup("Run")
	if err != nil {
		panic(err)
	}
	os.Args = os.Args[1:]
	run.(func())()
}
