package files

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

type infoInput struct {
	Path string `json:"path" doc:"a file, folder or link"`
}

type info struct {
	Path       string    `json:"path"`
	Absolute   string    `json:"absolute" doc:"its absolute path"`
	URI        string    `json:"uri"`
	Type       string    `json:"type" enum:"file,folder,symlink,other"`
	Size       *int64    `json:"size,omitempty" doc:"bytes, of a file"`
	MIMEType   string    `json:"mime_type,omitempty" doc:"of a file, by its name and its first bytes"`
	Text       *bool     `json:"text,omitempty" doc:"of a file: whether it is text"`
	LinkTarget string    `json:"link_target,omitempty" doc:"the target of a link, as written in it"`
	Mode       string    `json:"mode" doc:"as in the output of ls"`
	Permission string    `json:"permission" doc:"in octal"`
	Modified   time.Time `json:"modified"`
	Accessed   time.Time `json:"accessed,omitzero" doc:"if the system reports it"`
	Created    time.Time `json:"created,omitzero" doc:"if the system reports it"`
}

func (s *server) addInfo() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "info", Title: "Describe a file", Description: "Returns type, size, mode, times and MIME type of a file or folder. For a link it returns the target, and does not follow it.",
		Annotations: reads,
	}, inArea(s, s.info))
}

func (s *server) info(ctx context.Context, a *area, in infoInput) (*info, error) {
	t, err := a.find(in.Path)
	if err != nil {
		return nil, err
	}
	st, err := t.place.dir.Lstat(t.name())
	if err != nil {
		return nil, t.fault(err)
	}
	e := entryOf(t, st)
	out := &info{
		Path: t.shown, Absolute: filepath.FromSlash(host.join(t.place.spellings[0], t.rel)), URI: t.uri(), Type: e.Type, Size: e.Size,
		Mode: st.Mode().String(), Permission: fmt.Sprintf("%04o", st.Mode().Perm()), Modified: st.ModTime().UTC(),
	}
	out.Accessed, out.Created = times(st)
	switch e.Type {
	case "symlink":
		out.LinkTarget = t.linkTarget()
	case "file":
		f, _, err := t.open()
		if err != nil {
			break // not readable
		}
		defer f.Close()
		if head, err := headOf(f); err == nil {
			out.MIMEType, out.Text = mimeOf(t.rel, head), new(isText(head))
		}
	}
	return out, nil
}
