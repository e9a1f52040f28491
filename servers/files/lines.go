package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxText bounds the text that one call reads, in bytes. As JSON it may be six times
// as long, which is still within the limit of clients.
const maxText = 256 << 10

// window is a range of lines of a file.
type window struct {
	text  []byte // whole lines, unless cut
	first int    // number of the first line, from 1
	lines int
	more  bool // more lines follow
	cut   bool // the only line is longer than the limit
}

// readLines reads count lines (0: all) from the line first on, at most most bytes.
func readLines(ctx context.Context, r io.Reader, first, count, most int) (window, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	w := window{first: first}
	begun := 0 // 1 while the line has bytes but no end yet
	for line := 1; ; {
		if ctx.Err() != nil {
			return w, context.Cause(ctx)
		}
		part, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return w, err
		}
		if line >= first && len(part) > 0 {
			if count > 0 && w.lines == count {
				w.more = true
				return w, nil
			}
			if len(w.text)+len(part) > most {
				w.more = true
				if end := bytes.LastIndexByte(w.text, '\n'); end >= 0 {
					w.text = w.text[:end+1]
					return w, nil
				}
				w.text = cutRune(append(w.text, part[:most-len(w.text)]...))
				w.lines, w.cut = 1, true
				return w, nil
			}
			w.text = append(w.text, part...)
		}
		ended := bytes.HasSuffix(part, []byte("\n"))
		if line >= first && (ended || errors.Is(err, io.EOF) && lastIsOpen(w.text)) {
			w.lines++
		}
		switch {
		case ended:
			line, begun = line+1, 0
		case len(part) > 0:
			begun = 1
		}
		if errors.Is(err, io.EOF) {
			if w.lines == 0 && first > 1 {
				return w, fmt.Errorf("there is no line %d; the file has %s", first, plural(line-1+begun, "line", "lines"))
			}
			return w, nil
		}
	}
}

// lastIsOpen reports whether text ends in a line without a newline.
func lastIsOpen(text []byte) bool { return len(text) > 0 && text[len(text)-1] != '\n' }

// readTail reads the last count lines of a file of a size, at most most bytes.
func readTail(r io.ReaderAt, size int64, count, most int) (window, error) {
	start := max(0, size-int64(most)-1) // one more byte, to see whether a line begins after it
	text := make([]byte, 0, min(size, 64<<10))
	at := size
	for at > start {
		// Doubling copies each byte once on average.
		from := max(start, at-max(64<<10, int64(len(text))))
		part := make([]byte, at-from, int(at-from)+len(text))
		n, err := r.ReadAt(part, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return window{}, err
		}
		text, at = append(part[:n], text...), from
		if bytes.Count(text, []byte("\n")) > count {
			break
		}
	}
	w := window{text: text}
	end := len(text)
	if end > 0 && text[end-1] == '\n' {
		end--
	}
	for w.lines < count {
		w.lines++
		i := bytes.LastIndexByte(text[:end], '\n')
		if i < 0 {
			// The text begins within a line.
			if w.more = at > 0 || len(text) > most; w.more {
				if w.cut = w.lines == 1; w.cut {
					w.text = fromRune(text[1:])
				} else {
					w.text, w.lines = text[end+1:], w.lines-1
				}
			}
			if len(text) == 0 {
				w.lines = 0
			}
			return w, nil
		}
		end = i
	}
	w.text, w.more = text[end+1:], true
	return w, nil
}

// fromRune drops the rest of a cut character at the beginning.
func fromRune(b []byte) []byte {
	for n := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[n]) {
			return b[n:]
		}
	}
	return b
}

// valid converts bytes to text, and counts those that are not UTF-8 and become
// U+FFFD.
func valid(b []byte) (text string, wrong int) {
	if utf8.Valid(b) {
		return string(b), 0
	}
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			wrong++
		}
		rest = rest[n:]
	}
	return string([]rune(string(b))), wrong
}
