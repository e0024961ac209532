// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// What only the bytes show, since a decoder takes all of it: which fields are there at all.
//
// A writer of proto3 leaves numbers that are 0 out, packs lists of numbers, and sends no field that the schema (1.10) has not.

type kind int

const (
	number  kind = iota // varint
	fixed               // 8 bytes
	text                // UTF-8, may be empty only in a list
	texts               // a list of those
	data                // bytes
	numbers             // packed varints
	fixeds              // packed, 8 bytes each
	oneof               // a number that may be 0: it says which of several is there
	float               // 8 bytes that may be 0, as one of several
	message
)

type field struct {
	kind kind
	of   string
}

var schema = map[string]map[uint64]field{
	"request": {1: {message, "resource profiles"}, 2: {message, "dictionary"}},
	"dictionary": {1: {message, "mapping"}, 2: {message, "location"}, 3: {message, "function"}, 4: {message, "link"},
		5: {texts, ""}, 6: {message, "attribute"}, 7: {message, "stack"}},
	"resource profiles": {1: {message, "resource"}, 2: {message, "scope profiles"}, 3: {text, ""}},
	"scope profiles":    {1: {message, "scope"}, 2: {message, "profile"}, 3: {text, ""}},
	"resource":          {1: {message, "key value"}, 2: {number, ""}},
	"scope":             {1: {text, ""}, 2: {text, ""}, 3: {message, "key value"}, 4: {number, ""}},
	"key value":         {1: {text, ""}, 2: {message, "value"}},
	"value": {1: {texts, ""}, 2: {oneof, ""}, 3: {oneof, ""}, 4: {float, ""}, 5: {message, "array"}, 6: {message, "list"},
		7: {data, ""}},
	"array": {1: {message, "value"}},
	"list":  {1: {message, "key value"}},
	"profile": {1: {message, "value type"}, 2: {message, "sample"}, 3: {fixed, ""}, 4: {number, ""}, 5: {message, "value type"},
		6: {number, ""}, 7: {data, ""}, 8: {number, ""}, 9: {text, ""}, 10: {data, ""}, 11: {numbers, ""}},
	"value type": {1: {number, ""}, 2: {number, ""}},
	"sample":     {1: {number, ""}, 2: {numbers, ""}, 3: {number, ""}, 4: {numbers, ""}, 5: {fixeds, ""}},
	"mapping":    {1: {number, ""}, 2: {number, ""}, 3: {number, ""}, 4: {number, ""}, 5: {numbers, ""}},
	"location":   {1: {number, ""}, 2: {number, ""}, 3: {message, "line"}, 4: {numbers, ""}},
	"line":       {1: {number, ""}, 2: {number, ""}, 3: {number, ""}},
	"function":   {1: {number, ""}, 2: {number, ""}, 3: {number, ""}, 4: {number, ""}},
	"link":       {1: {data, ""}, 2: {data, ""}},
	"attribute":  {1: {number, ""}, 2: {message, "value"}, 3: {number, ""}},
	"stack":      {1: {numbers, ""}},
}

// Wire types.
const (
	varint = 0
	eight  = 1
	length = 2
)

var wireType = map[kind]uint64{number: varint, oneof: varint, fixed: eight, float: eight}

func checkVarints(list []byte) error {
	for len(list) > 0 {
		_, n := binary.Uvarint(list)
		if n <= 0 {
			return fmt.Errorf("a list of numbers is cut off")
		}
		list = list[n:]
	}
	return nil
}

// A field that is as long as it says.
func checkContent(f field, content []byte) error {
	switch {
	case f.kind == message:
		return checkMessage(f.of, content)
	case f.kind == texts || f.kind == text:
		if !utf8.Valid(content) {
			return fmt.Errorf("%q is not UTF-8", content)
		}
	case f.kind == numbers:
		if err := checkVarints(content); err != nil {
			return err
		}
	case f.kind == fixeds && len(content)%8 != 0:
		return fmt.Errorf("a list of times has %d bytes", len(content))
	}
	if len(content) == 0 && f.kind != texts {
		return fmt.Errorf("an empty field is there")
	}
	return nil
}

func checkMessage(name string, bytes []byte) error {
	seen := map[uint64]bool{}
	for len(bytes) > 0 {
		tag, n := binary.Uvarint(bytes)
		f, known := schema[name][tag>>3]
		if n <= 0 || !known {
			return fmt.Errorf("a %s has a field %d", name, tag>>3)
		}
		bytes = bytes[n:]
		want, isScalar := wireType[f.kind]
		if !isScalar {
			want = length
		}
		if tag&7 != want {
			return fmt.Errorf("field %d of a %s is of the wire type %d", tag>>3, name, tag&7)
		}
		if f.kind != message && f.kind != texts && seen[tag] {
			return fmt.Errorf("a %s has two fields %d", name, tag>>3)
		}
		seen[tag] = true
		size := uint64(8)
		if want != eight {
			if size, n = binary.Uvarint(bytes); n <= 0 {
				return fmt.Errorf("a %s is cut off", name)
			}
			bytes = bytes[n:]
		}
		if want == varint {
			if size == 0 && f.kind == number {
				return fmt.Errorf("field %d of a %s is there and 0", tag>>3, name)
			}
			continue
		}
		if size > uint64(len(bytes)) {
			return fmt.Errorf("a %s is cut off", name)
		}
		if want == length {
			if err := checkContent(f, bytes[:size]); err != nil {
				return fmt.Errorf("field %d of a %s: %w", tag>>3, name, err)
			}
		} else if f.kind == fixed && binary.LittleEndian.Uint64(bytes) == 0 {
			return fmt.Errorf("field %d of a %s is there and 0", tag>>3, name)
		}
		bytes = bytes[size:]
	}
	return nil
}

func checkWire(request []byte) error {
	if err := checkMessage("request", request); err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	return nil
}

// Requests of one sample (or less) that break it, each in one way.
var brokenWire = []struct{ what, bytes string }{
	{"an unknown field", "\x1a\x00"},
	{"a dictionary that is cut off", "\x12\x05\x0a\x00"},
	{"a number that is 0", "\x12\x04\x0a\x02\x08\x00"},
	{"numbers that are not packed", "\x12\x04\x3a\x02\x08\x01"},
	{"an empty list", "\x12\x04\x3a\x02\x0a\x00"},
	{"a sample of schema 1.9", "\x0a\x08\x12\x06\x12\x04\x12\x02\x20\x01"},
	{"a reference to a key", "\x0a\x06\x0a\x04\x0a\x02\x18\x01"},
	{"text that is none", "\x12\x03\x2a\x01\xff"},
}

func selfTestWire() error {
	if err := checkWire([]byte("\x12\x0e\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x3a\x00")); err != nil {
		return fmt.Errorf("an empty dictionary: %w", err)
	}
	for _, b := range brokenWire {
		if checkWire([]byte(b.bytes)) == nil {
			return fmt.Errorf("nothing is wrong with %s", b.what)
		}
	}
	return nil
}
