package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFaults bounds how many faults one ValidationError lists.
const maxFaults = 20

// A Fault is one thing wrong with a JSON value.
type Fault struct {
	// Path is the place of the fault, as people write it: a.b[2].c. Names that are not plain
	// words are quoted: a["odd name"]. Empty means the root.
	Path string

	// Pointer is the same place as a JSON pointer: /a/b/2/c. For a property that is missing or not known it is that
	// of the property, while Path is that of the object. Empty means the root. Instead of a pointer that is longer
	// than 4 KiB it is that of a place around.
	Pointer string

	// Problem describes the fault and the accepted values: "must be at least 0, got -3".
	Problem string
}

// String returns "path: problem", or the problem alone at the root.
func (f Fault) String() string {
	if f.Path == "" {
		return f.Problem
	}
	return f.Path + ": " + f.Problem
}

// ValidationError lists what is wrong with a JSON value. [Type.Decode], [Validator.Validate] and
// [Form.Check] return it for a value that does not fit.
type ValidationError struct {
	// Faults are in the order they stand in the JSON text for Type.Decode and
	// in the order of their paths for a Validator. At most 20 are kept.
	Faults []Fault

	// More counts the faults that were found but not kept. A Validator stops after 1000 in all.
	More int
}

// Error joins the faults with "; ".
func (e *ValidationError) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	if e.More > 0 {
		b.WriteString("; and " + strconv.Itoa(e.More) + " more")
	}
	return b.String()
}

// faultError returns the first faults as an error, or nil if there are none. The argument more is
// the number of further faults.
func faultError(faults []Fault, more int) error {
	switch n := len(faults); {
	case n == 0:
		return nil
	case n > maxFaults:
		return &ValidationError{Faults: faults[:maxFaults], More: n - maxFaults + more}
	}
	return &ValidationError{Faults: faults, More: more}
}

// under puts faults found in the value called name below that name.
func under(faults []Fault, name string) {
	for i := range faults {
		faults[i].Path = joinPath(pathName(name), faults[i].Path)
		faults[i].Pointer = joinPointer(pointerTo(name), faults[i].Pointer)
	}
}

// underIndex does the same for an array item.
func underIndex(faults []Fault, i int) {
	for k := range faults {
		faults[k].Path = joinPath("["+strconv.Itoa(i)+"]", faults[k].Path)
		faults[k].Pointer = joinPointer("/"+strconv.Itoa(i), faults[k].Pointer)
	}
}

// pointerTo returns the JSON pointer of a member.
func pointerTo(name string) string { return "/" + escapePointer.Replace(name) }

// maxPointer bounds a pointer, because names may be long and nest.
const maxPointer = 4 << 10

// joinPointer puts a step in front of a pointer.
func joinPointer(step, rest string) string {
	if len(step)+len(rest) > maxPointer {
		return ""
	}
	return step + rest
}

func joinPath(head, tail string) string {
	if head == "" || tail == "" || tail[0] == '[' {
		return head + tail
	}
	return head + "." + tail
}

// pathName writes a member name as a path element: plain words as they are,
// anything else quoted in brackets.
func pathName(name string) string {
	plain := name != "" && len(name) <= quoteMax
	for i := 0; i < len(name) && plain; i++ {
		c := name[i]
		plain = c == '_' || c == '-' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	if plain {
		return name
	}
	return "[" + quote(name) + "]"
}

// quoteMax bounds how much of a peer's text is repeated in an error.
const quoteMax = 60

// quote quotes text from a peer for an error, clipped when long.
func quote(s string) string {
	if len(s) <= quoteMax {
		return strconv.Quote(s)
	}
	cut := quoteMax
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}

// excerpt clips a number or another bare literal for an error.
func excerpt(s string) string {
	if len(s) <= quoteMax {
		return s
	}
	return strings.ToValidUTF8(s[:quoteMax], "") + "..."
}
