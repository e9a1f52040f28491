package files

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// Reading on at the offset that an answer names gives the whole file, and a tail is the
// end of it.
func FuzzLines(f *testing.F) {
	for _, text := range []string{"", "\n", "a", "a\n", "a\nb", "\n\n\n", "a\r\nb\r\n", strings.Repeat("abc\n", 50), "long line without an end", "ü\nöäü\n"} {
		f.Add([]byte(text), uint8(8), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, most, count uint8) {
		most = max(most, 4)
		limit := int(count%5) + 1
		var got []byte
		offset, cut := 1, false
		for range len(text) + 2 {
			w, err := readLines(context.Background(), bytes.NewReader(text), offset, limit, int(most))
			if err != nil {
				t.Fatalf("offset %d of %q: %v", offset, text, err)
			}
			if len(w.text) > int(most) || w.lines > limit {
				t.Fatalf("offset %d of %q: %d lines %q, at most %d of %d bytes are wanted", offset, text, w.lines, w.text, limit, most)
			}
			got, cut, offset = append(got, w.text...), cut || w.cut, offset+w.lines
			if w.more && w.lines == 0 {
				t.Fatalf("offset %d of %q: no lines, and more", offset, text)
			}
			if !w.more || w.cut && offset > bytes.Count(text, []byte("\n"))+1 || offset > bytes.Count(text, []byte("\n")) && bytes.HasSuffix(text, []byte("\n")) {
				break
			}
		}
		if !cut && !bytes.Equal(got, text) {
			t.Fatalf("the parts of %q are %q", text, got)
		}
		w, err := readTail(bytes.NewReader(text), int64(len(text)), limit, int(most))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(text, w.text) || len(w.text) > int(most) || w.lines > limit {
			t.Fatalf("the last %d lines of %q are %d, %q", limit, text, w.lines, w.text)
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		all := bytes.Join(lines[max(0, len(lines)-limit):], nil)
		if len(all) <= int(most) && !bytes.Equal(w.text, all) {
			t.Fatalf("the last %d lines of %q are %q, want %q", limit, text, w.text, all)
		}
	})
}
