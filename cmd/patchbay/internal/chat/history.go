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

// history is what the person said before, in this run and in earlier ones.
type history struct {
	path  string // of the file, a JSON string a line; empty: none is kept
	said  []string
	at    int    // len(said): what is being written now
	draft string // that, while an earlier one is shown
}

const (
	maxHistory      = 1000
	maxHistoryBytes = 4 << 20 // of the file that is read
	maxSaid         = 16 << 10
)

// open reads the file, of one that is too long the end. One that cannot be read is as none.
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

// tail reads the lines at the end of a file, at most so many bytes, and tells whether there are
// more.
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
		_, data, _ = bytes.Cut(data, []byte("\n")) // what is before is a piece of a line
	}
	return data, from > 0, err
}

// lock keeps other chats from changing the file. The lock is short, so a wait for it is too.
func (h *history) lock() (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return ownfile.Lock(ctx, h.path+".lock")
}

// add keeps what was said.
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
		return fmt.Errorf("keep the history: %w", err)
	}
	defer unlock()
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// shorten writes the file anew, with what is remembered. If that fails the file stays long. The
// lock is held.
func (h *history) shorten() {
	var out []byte
	for _, text := range h.said {
		line, _ := json.Marshal(text) // of a string
		out = append(append(out, line...), '\n')
	}
	_ = ownfile.Replace(h.path, out)
}

// move goes back (-1) or on (1) from what is shown now, and returns what is there.
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
