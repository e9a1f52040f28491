package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// history holds the earlier inputs of the person, in this run and others.
type history struct {
	path  string // of the file, one JSON string per line; empty: none
	said  []string
	at    int    // index into said; len(said): the current input
	draft string // the current input, while an earlier one is shown
}

const (
	maxHistory      = 1000
	maxHistoryBytes = 4 << 20 // bytes read from the file
	maxSaid         = 16 << 10
)

// open reads the file, or the end of one that is too long. A file that cannot be read counts as
// empty.
func (h *history) open(path string) {
	h.path = path
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	unlock, unlocked := h.lock()
	if unlocked == nil {
		defer unlock()
	}
	data, cut, err := tail(path, maxHistoryBytes)
	if err != nil {
		return
	}
	lines := 0
	for line := range strings.Lines(string(data)) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil && text != "" {
			h.said = append(h.said, text)
		}
		lines++
	}
	h.said = h.said[max(0, len(h.said)-maxHistory):]
	h.at = len(h.said)
	if unlocked == nil && (cut || lines > 2*maxHistory) {
		h.shorten()
	}
}

// tail reads the last lines of a file, at most most bytes, and reports whether there are more.
func tail(path string, most int64) (data []byte, cut bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	from := max(0, size-most)
	data, err = io.ReadAll(io.NewSectionReader(f, from, most))
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n")) // before it is a partial line
	}
	return data, from > 0, err
}

// lock keeps other chats from changing the file. It is held briefly, so the wait for it is short.
func (h *history) lock() (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return ownfile.Lock(ctx, h.path+".lock")
}

// add stores an input.
func (h *history) add(text string) error {
	defer func() { h.at, h.draft = len(h.said), "" }()
	if len(text) > maxSaid || len(h.said) > 0 && h.said[len(h.said)-1] == text {
		return nil
	}
	h.said = append(h.said, text)
	h.said = h.said[max(0, len(h.said)-maxHistory):]
	if h.path == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return err
	}
	unlock, err := h.lock()
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	defer unlock()
	if err := ownfile.AppendLine(h.path, line); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// shorten rewrites the file with the remembered inputs. If that fails, the file stays long. The
// caller holds the lock.
func (h *history) shorten() {
	var out []byte
	for _, text := range h.said {
		line, _ := json.Marshal(text) // a string always marshals
		out = append(append(out, line...), '\n')
	}
	_ = ownfile.Replace(h.path, out)
}

// move goes back (-1) or forward (1) from the shown input, and returns the new one.
func (h *history) move(by int, now string) (string, bool) {
	to := h.at + by
	if to < 0 || to > len(h.said) {
		return "", false
	}
	if h.at == len(h.said) {
		h.draft = now
	}
	h.at = to
	if to == len(h.said) {
		return h.draft, true
	}
	return h.said[to], true
}
