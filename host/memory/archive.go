package memory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// archive is the JSON form of a conversation.
type archive struct {
	Format       string       `json:"format"`
	Version      int          `json:"version"`
	Conversation Conversation `json:"conversation"`
	Entries      []Entry      `json:"entries"`
}

const (
	format  = "patchbay conversation"
	version = 1
)

// WriteJSON writes a conversation as JSON, a line for each entry.
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

// marshal returns the JSON of a value. Raw values in it change only in white space.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
