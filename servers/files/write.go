package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

type writeInput struct {
	Path      string `json:"path" doc:"the file"`
	Content   string `json:"content" doc:"the whole content"`
	Encoding  string `json:"encoding,omitempty" doc:"of content" enum:"text,base64" default:"text"`
	Overwrite bool   `json:"overwrite,omitempty" doc:"replace an existing file"`
	Parents   bool   `json:"parents,omitempty" doc:"create missing folders"`
}

type written struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created" doc:"whether the file is new"`
}

func (s *server) addWriting() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "write", Title: "Write a file",
		Description: "Creates a file or, with overwrite, replaces one as a whole. To change parts of a file, use edit.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(true), Idempotent: new(true), OpenWorld: new(false)},
	}, inArea(s, s.write))
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "edit", Title: "Edit a file",
		Description: "Replaces passages of a file of text, one after the other, and returns a unified diff. Each old_text must be in the file exactly once, unless replace_all is set. Line ends stay as they are. With dry_run it only returns the diff and writes nothing.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(true), Idempotent: new(false), OpenWorld: new(false)},
	}, inArea(s, s.edit))
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "move", Title: "Move",
		Description: "Renames or moves a file or folder. It never replaces an existing file. From one root to another it moves only files.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(true), Idempotent: new(false), OpenWorld: new(false)},
	}, inArea(s, s.move))
}

func (s *server) write(ctx context.Context, a *area, in writeInput) (*written, error) {
	data := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(strings.TrimSpace(in.Content)); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	t, err := a.find(in.Path)
	if err != nil {
		return nil, err
	}
	release, err := s.change(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	replaced, err := t.store(ctx, bytes.NewReader(data), storing{parents: in.Parents, overwrite: in.Overwrite})
	if err != nil {
		return nil, err
	}
	return &written{t.shown, len(data), !replaced}, nil
}

// readText reads a file to edit.
func (t target) readText() (_ string, how storing, err error) {
	st, err := t.place.dir.Lstat(t.name())
	if err != nil {
		return "", storing{}, t.fault(err)
	}
	if kind(st.Mode()) == "symlink" {
		return "", storing{}, fmt.Errorf("%q is a link to %q; edit that instead", t.shown, text.Short(t.linkTarget()))
	}
	f, info, err := t.open()
	if err != nil {
		return "", storing{}, err
	}
	defer f.Close()
	data, err := readWhole(f, info, maxEdited)
	switch {
	case err != nil:
		return "", storing{}, t.fault(err)
	case !isText(data):
		return "", storing{}, fmt.Errorf("%q is not text", t.shown)
	case !utf8.Valid(data):
		return "", storing{}, t.fault(errors.New("is not valid UTF-8 and cannot be edited"))
	}
	return string(data), storing{overwrite: true, read: info}, nil
}
