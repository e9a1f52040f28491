// Package audit appends a line of JSON to a file for each decision about a tool call, and for
// each outcome of a call.
//
//	log, err := audit.Open("audit.jsonl", nil)
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	err = log.Write(audit.Record{Server: "shop", Tool: "buy", Arguments: args, Allowed: true, By: "person"})
//
// A line has a digest of the arguments, by which equal calls can be found, and the arguments
// themselves only if [Options] say so. Results are not written.
//
// # Guarantees
//
//   - Lines are only added, each with one write: several processes may write to one file. There
//     may be empty lines between theirs.
//   - A line that cannot be written whole is an error of Write, and later lines are not joined to
//     its fragment.
//   - A new file is readable only by its owner.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
)

// Record is a decision about a call, or the outcome of the call: two lines with the same Call.
type Record struct {
	Time         time.Time // zero: the time of Write
	Conversation string
	Call         string // id of the call
	Server       string // as the person calls it
	Identity     string // of the server
	Tool         string
	Arguments    json.RawMessage
	Allowed      bool
	By           string        // the origin of the decision: "person", "conversation", "always", "rule", "read-only", "nobody"
	Outcome      string        // empty: a decision; "done", "failed", "unknown", "cancelled", ...
	Reason       string        // of a denial, or the kind of failure; it is not redacted; may be empty
	Cached       bool          // the result came from the cache
	Took         time.Duration // duration of a finished call
}

// line is the JSON form of a record.
type line struct {
	Time         time.Time       `json:"time"`
	Conversation string          `json:"conversation,omitempty"`
	Call         string          `json:"call,omitempty"`
	Server       string          `json:"server"`
	Identity     string          `json:"identity,omitempty"`
	Tool         string          `json:"tool"`
	Digest       string          `json:"digest"`
	Arguments    json.RawMessage `json:"arguments,omitzero"`
	Bytes        int             `json:"argumentsBytes,omitzero"` // instead of arguments that are too long
	Allowed      bool            `json:"allowed"`
	By           string          `json:"by,omitempty"`
	Outcome      string          `json:"outcome,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Cached       bool            `json:"cached,omitzero"`
	TookMS       int64           `json:"tookMs,omitzero"`
}

// Options configure a [Log]. Nil and the zero value mean defaults.
type Options struct {
	// Arguments enables writing arguments, redacted, of at most 64 KiB per call.
	Arguments bool

	// Redactor removes secrets from arguments. Nil means the default one, see
	// [trace.NewRedactor].
	Redactor *trace.Redactor
}

const (
	maxArguments = 64 << 10
	maxText      = 1 << 10
)

// Log is an open audit log. It is safe for concurrent use.
type Log struct {
	options Options

	mu   sync.Mutex
	file *os.File // guarded by mu
}

// DefaultPath returns the user's file: audit.jsonl in the folder patchbay of the user's data.
func DefaultPath() (string, error) { return ownfile.Data("audit.jsonl") }

// Open opens a log to append to, and creates the file and its folder if needed. An empty path
// means [DefaultPath].
func Open(path string, o *Options) (*Log, error) {
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, fmt.Errorf("where to keep the audit log: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l := &Log{file: f}
	if o != nil {
		l.options = *o
	}
	if l.options.Redactor == nil {
		l.options.Redactor = trace.NewRedactor(nil)
	}
	return l, nil
}

// torn reports whether a file ends in the middle of a line: its writer was stopped there, or is
// still writing, in which case an empty line will follow.
func torn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil && err != io.EOF {
		return false, err
	}
	return last[0] != '\n', nil
}

// Write writes a record. After an error the record is not in the log, or not whole; an action
// that requires a record must not happen then.
func (l *Log) Write(r Record) error {
	out := line{
		Time: r.Time.UTC(), Conversation: clip(r.Conversation), Call: clip(r.Call), Server: clip(r.Server), Identity: clip(r.Identity),
		Tool: clip(r.Tool), Digest: Digest(r.Arguments), Allowed: r.Allowed, By: clip(r.By), Outcome: clip(r.Outcome),
		Reason: clip(r.Reason), Cached: r.Cached, TookMS: r.Took.Milliseconds(),
	}
	if r.Time.IsZero() {
		out.Time = time.Now().UTC()
	}
	switch {
	case !l.options.Arguments || len(r.Arguments) == 0:
	case len(r.Arguments) > maxArguments:
		out.Bytes = len(r.Arguments)
	default:
		out.Arguments = l.redacted(r.Arguments)
	}
	text, err := jsonx.Marshal(out)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	half, err := torn(l.file) // of the last writer
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if half {
		text = append([]byte("\n"), text...)
	}
	if _, err := l.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// redacted returns JSON without its secrets.
func (l *Log) redacted(arguments json.RawMessage) json.RawMessage {
	f := l.options.Redactor.Frame(trace.Frame{Msg: arguments})
	if f.Msg != nil && jsonx.Valid(f.Msg, 0) == nil {
		return f.Msg
	}
	return jsonx.AppendString(nil, strings.ToValidUTF8(string(f.Raw), "�")) // the model's arguments are not JSON
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// Digest returns the SHA-256, in hex, of arguments. White space and the order of members make no
// difference; no arguments are an empty object.
func Digest(arguments json.RawMessage) string {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	sum := sha256.Sum256(jsonx.Canonical(arguments))
	return hex.EncodeToString(sum[:])
}

// clip bounds a text in a line.
func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "�")
}
