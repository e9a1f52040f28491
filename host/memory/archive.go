package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// archive is a conversation as a file.
type archive struct {
	Format       string       `json:"format"`
	Version      int          `json:"version"`
	Conversation Conversation `json:"conversation"`
	Entries      []Entry      `json:"entries"`
}

const (
	format  = "patchbay conversation"
	version = 1

	// MaxArchive bounds a file that [ReadJSON] reads, in bytes.
	MaxArchive = 1 << 30
)

// WriteJSON writes a conversation as JSON that [ReadJSON] reads, a line for each entry.
func WriteJSON(w io.Writer, c Conversation, entries []Entry) error {
	head, err := marshal(archive{Format: format, Version: version, Conversation: c, Entries: []Entry{}})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(bytes.TrimSuffix(head, []byte("]}")))
	for i, e := range entries {
		e.Message = keepable(e.Message)
		line, err := marshal(e)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}

// marshal returns the JSON of a value. What is raw in it stays so, but for white space.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// ReadJSON reads what [WriteJSON] wrote. A file of a newer version is an error.
func ReadJSON(r io.Reader) (Conversation, []Entry, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxArchive+1))
	if err == nil && len(data) > MaxArchive {
		err = fmt.Errorf("it has more than %d bytes", MaxArchive)
	}
	if err != nil {
		return Conversation{}, nil, fmt.Errorf("read a conversation: %w", err)
	}
	var a archive
	switch err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &a); {
	case err != nil:
		return Conversation{}, nil, fmt.Errorf("read a conversation: it is none that was exported as JSON: %w", err)
	case a.Format != format:
		return Conversation{}, nil, errors.New("read a conversation: it is none that was exported as JSON")
	case a.Version > version:
		return Conversation{}, nil, fmt.Errorf("read a conversation: it was written by a newer version (format %d, this one knows %d); upgrade", a.Version, version)
	}
	return a.Conversation, a.Entries, nil
}

// Import keeps a conversation that [ReadJSON] has read, under its own id if that is free and is
// one. It returns it as it is kept.
func (s *Store) Import(ctx context.Context, c Conversation, entries []Entry) (Conversation, error) {
	if _, err := s.Find(ctx, c.ID); err == nil || !validID(c.ID) {
		c.ID = ""
	}
	c, err := s.Create(ctx, c)
	if err != nil {
		return c, err
	}
	if err := s.Replace(ctx, c.ID, 0, entries...); err != nil {
		return c, errors.Join(err, s.Delete(ctx, c.ID)) // nothing or all of it
	}
	c, err = s.Find(ctx, c.ID)
	return c, err
}
