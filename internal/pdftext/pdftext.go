// Package pdftext reads the text of PDF files (ISO 32000): files of any version, with cross-reference tables
// and streams, object streams and all filters of text. It does not decrypt, and reads no text in pictures.
//
// The text of a page is in the order in which the file draws it. That is the reading order in almost all files,
// but a few draw the columns of a table one after the other.
package pdftext

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reasons for which a file has no text to read.
var (
	ErrDamaged   = errors.New("it is damaged")
	ErrEncrypted = errors.New("it is encrypted")
	ErrNoText    = errors.New("it has no text, perhaps only pictures of text")
	ErrTooMuch   = errors.New("it is too large or too complicated")
)

// Bounds of one file.
const (
	maxWork    = 256 << 20 // bytes that are parsed or decoded; several bytes for what takes more time
	maxDecoded = 32 << 20  // bytes of one stream
	maxObjects = 500_000
	maxPages   = 10_000
	maxValues  = 1 << 17 // in one object
	maxNested  = 32      // arrays in arrays, and whatever else is in its like
)

// Text is the text of a PDF.
type Text struct {
	Pages   []string // the text of each page that was read
	All     int      // how many pages the file has; more than Pages: the rest was left out
	Unknown int      // how many characters have no known meaning, because their font does not tell it; each is U+FFFD in the text
}

// Extract reads the text of at most so many bytes. It returns one of the errors above, or the cause for which ctx ended.
// Its time and memory have bounds, whatever the file holds.
func Extract(ctx context.Context, data []byte, most int) (*Text, error) {
	f := &file{ctx: ctx, data: data, work: maxWork}
	pages, err := f.open()
	if err != nil {
		return nil, err
	}
	t := &Text{All: len(pages)}
	size, any := 0, false
	for _, p := range pages {
		text, unknown := f.text(p)
		if f.err != nil || size+len(text) > most {
			break
		}
		any = any || strings.TrimSpace(text) != ""
		size += len(text)
		t.Pages, t.Unknown = append(t.Pages, text), t.Unknown+unknown
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case any:
		return t, nil
	case len(t.Pages) < len(pages): // it has text that does not fit, or took too much
		return nil, ErrTooMuch
	}
	return nil, ErrNoText
}

// ForModel returns what a language model gets in place of a PDF that it does not take: its name and text, of at most so
// many bytes. It takes at most 10 seconds.
func ForModel(ctx context.Context, name string, data []byte, most int) (string, *Text, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, ErrTooMuch)
	defer cancel()
	t, err := Extract(ctx, data, most)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("[text of %s]\n%s", Title(name), t), t, nil
}

// Title names a PDF in a sentence.
func Title(name string) string {
	if name == "" {
		return "a PDF"
	}
	return fmt.Sprintf("the PDF %q", name)
}

// String returns the text with the numbers of the pages, and says what was left out.
func (t *Text) String() string {
	var b strings.Builder
	for i, page := range t.Pages {
		fmt.Fprintf(&b, "[page %d of %d]\n%s", i+1, t.All, page)
		if page != "" && !strings.HasSuffix(page, "\n") {
			b.WriteByte('\n')
		}
	}
	switch n := len(t.Pages); {
	case n == t.All:
	case n == t.All-1:
		fmt.Fprintf(&b, "[the text is too long: page %d of %d is left out]\n", t.All, t.All)
	default:
		fmt.Fprintf(&b, "[the text is too long: pages %d to %d are left out]\n", n+1, t.All)
	}
	return b.String()
}
