package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
)

// Paste is for a user whose browser runs on another machine: it shows the page as a link, and the
// user pastes the address that the browser ends up at. In and Out are required, and no field may
// change after the first visit.
//
// A visit that ends without an answer leaves a goroutine behind that reads a line from In, which
// the next visit gets.
type Paste struct {
	In  io.Reader // an address a line
	Out io.Writer

	mu    sync.Mutex // one visit at a time
	lines *bufio.Reader
	line  chan pasted // a line on its way; nil: no goroutine reads
}

type pasted struct {
	text string
	err  error
}

const (
	maxPasted = 16 << 10 // bytes of a line
	maxPastes = 5        // of one visit
)

// Visit shows a page and waits for the address that its answer leads to. It asks again, up to four
// times, if the user pastes something else. It fits [Transport.Visit], whose RedirectURL should be
// one that no program listens on, such as that of a [Loopback] which is not used.
func (p *Paste) Visit(ctx context.Context, page string) (*url.URL, error) {
	if err := checkPage(page); err != nil {
		return nil, err
	}
	asked, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = fmt.Fprintf(p.Out, "Open this page in a browser:\n\n  %s\n\nThen paste the address that the browser ends up at, even if it shows no page:\n", page)
	if err != nil {
		return nil, err
	}
	for range maxPastes {
		text, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		back, err := url.Parse(strings.TrimSpace(text))
		if err == nil && back.Host != "" && back.Query().Get("state") == asked.Query().Get("state") {
			return back, nil
		}
		if _, err := fmt.Fprintln(p.Out, "This address does not belong to this login. Paste the whole address:"); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("none of the pasted addresses belongs to this login")
}

// next returns the next line.
func (p *Paste) next(ctx context.Context) (string, error) {
	if p.lines == nil {
		p.lines = bufio.NewReaderSize(p.In, maxPasted)
	}
	if p.line == nil {
		p.line = make(chan pasted, 1)
		go func(line chan pasted) {
			text, err := p.lines.ReadSlice('\n')
			if errors.Is(err, io.EOF) && len(text) > 0 {
				err = nil
			}
			line <- pasted{string(text), err}
		}(p.line)
	}
	select {
	case l := <-p.line:
		p.line = nil
		switch {
		case errors.Is(l.err, bufio.ErrBufferFull):
			return "", fmt.Errorf("the pasted address has more than %d bytes", maxPasted)
		case l.err != nil:
			return "", fmt.Errorf("read the pasted address: %w", l.err)
		}
		return l.text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
