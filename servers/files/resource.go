package files

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// pathVariable is the variable of the template. Its value is a URI's path without its
// first slash, percent-encoded.
const pathVariable = "path"

func (s *server) addResources() {
	type variables struct {
		Path string `json:"path"` // decoded
	}
	mcp.AddResourceTemplate(s.mcp, mcp.ResourceTemplate{
		URITemplate: "file:///{+" + pathVariable + "}", Name: "File", Description: "A file below one of the roots, of at most 2 MiB.",
		Complete: map[string]mcp.CompleteFunc{pathVariable: s.complete},
	}, func(ctx context.Context, in variables) (mcp.ResourceContents, error) {
		p := host.slashed(in.Path)
		if !host.windows {
			p = "/" + p
		}
		return s.readResource(ctx, p)
	})
}

// readResource reads the file at an absolute path.
func (s *server) readResource(ctx context.Context, p string) (c mcp.ResourceContents, err error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	a, err := s.area(ctx)
	if err != nil {
		return c, err
	}
	defer a.close()
	notFound := mcp.ResourceNotFound(host.toURI(p)) // for any reason, so that callers learn nothing of files outside
	if !host.absolute(p) {
		return c, notFound
	}
	t, err := a.find(p)
	if err != nil {
		return c, notFound
	}
	f, info, err := t.open()
	if err != nil {
		if _, stat := t.place.dir.Stat(t.name()); stat != nil {
			return c, notFound
		}
		return c, mcp.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	defer f.Close()
	data, err := readWhole(f, info, maxBlob)
	if err != nil {
		err = t.fault(err)
		if head, sniff := headOf(f); sniff == nil && isText(head) {
			err = fmt.Errorf("%w; the tool read reads it in parts", err)
		}
		return c, mcp.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	c.MIMEType = mimeOf(t.rel, data)
	if isText(data) && utf8.Valid(data) && escaped(data) <= maxEscaped {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return c, nil
}

// maxEscaped bounds text in its JSON form; clients accept 4 MiB.
const maxEscaped = 3 << 20

// escaped is the approximate length of text in JSON.
func escaped(data []byte) int {
	n := len(data)
	for _, c := range data {
		switch {
		case c == '\n' || c == '"' || c == '\\' || c == '\t' || c == '\r':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

// maxCompleted is the maximum number of values of a completion.
const maxCompleted = 100

// complete suggests paths of the template: files and folders, which end in a slash.
func (s *server) complete(ctx context.Context, prefix string, _ map[string]string) ([]string, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	a, err := s.area(ctx)
	if errors.Is(err, mcp.ErrNotSupported) {
		return []string{}, nil // 2026-07-28 does not allow questions in a completion
	}
	if err != nil {
		return nil, err
	}
	defer a.close()
	p, err := url.PathUnescape(prefix)
	if err != nil || len(p) > maxPath || !utf8.ValidString(p) {
		return []string{}, nil
	}
	p = host.slashed(p)
	if !host.windows {
		p = "/" + p
	}
	values := []string{}
	add := func(p string, folder bool) {
		v := strings.TrimPrefix(host.toURI(p), "file:///")
		if folder && !strings.HasSuffix(v, "/") {
			v += "/"
		}
		values = append(values, v)
	}
	dir, begun := path.Split(p)
	if host.absolute(dir) {
		if t, err := a.find(dir); err == nil {
			s.completeIn(ctx, t, dir, begun, add)
			return values, nil
		}
	}
	// Not in a root yet: suggest the roots that it may lead to.
	for _, f := range a.folders {
		if root := f.spellings[0]; len(root) >= len(p) && host.same(root[:len(p)], p) {
			add(root, true)
		}
	}
	return values, nil
}

// completeIn suggests the entries of a folder.
func (s *server) completeIn(ctx context.Context, t target, dir, begun string, add func(string, bool)) {
	folder, err := t.openDir()
	if err != nil {
		return
	}
	defer folder.Close()
	names, _, err := namesIn(folder)
	if err != nil {
		return
	}
	names, _ = t.place.shown(names)
	n := 0
	for _, name := range names {
		if n == maxCompleted || ctx.Err() != nil {
			break
		}
		if len(name) < len(begun) || !host.same(name[:len(begun)], begun) || !utf8.ValidString(name) {
			continue
		}
		if st, err := folder.Stat(name); err == nil && (st.IsDir() || st.Mode().IsRegular()) {
			add(dir+name, st.IsDir())
			n++
		}
	}
}
