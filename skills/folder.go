package skills

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// fresh is the time for which a scan is considered current.
const fresh = 2 * time.Second

// Bounds of a page.
const (
	pageSkills   = 100
	pageFiles    = 2000 // of all its skills; one skill is never split
	pageChildren = 500
)

// Folder is a folder of skills that a server serves.
type Folder struct {
	srv  *mcp.Server
	fsys fs.FS

	mu       sync.Mutex // held while scanning, so that one scan serves all waiters
	snapshot *snapshot  // guarded by mu
	at       time.Time  // of the last scan; guarded by mu
	said     string     // fault of the last scan; guarded by mu
}

// Serve makes a server offer the skills in a folder and declare the extension. A skill is a
// folder with a SKILL.md, at any depth; skills may be nested. The name in its front matter is
// that of its folder, and the folders above become part of its URI.
//
// Open a folder on disk with [os.OpenRoot], which confines access to it. Changes are found when
// skills are listed or requested, at most every 2 seconds, or by [Folder.Reload]; subscribers to
// the resources are notified. Server.Visible hides skills and files, because they are resources.
//
// The error names every invalid skill, or reports that there are no skills. Serve must be called
// before the server serves, and once for a server.
func Serve(s *mcp.Server, fsys fs.FS) (*Folder, error) {
	f := &Folder{srv: s, fsys: fsys}
	snapshot, err := scan(fsys, nil)
	if err == nil && len(snapshot.skills) == 0 {
		err = fmt.Errorf("no skill found: a skill is a folder with a %s", manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	if s.Extensions == nil {
		s.Extensions = map[string]json.RawMessage{}
	}
	s.Extensions[Extension] = json.RawMessage(`{"directoryRead":true}`)
	f.put(snapshot)
	s.HandleMethod("skills/list", f.list)
	s.HandleMethod("skills/get", f.get)
	s.HandleMethod("resources/directory/read", f.directory)
	return f, nil
}

// Skills returns the skills as of the last scan, by URI. They must not be changed.
func (f *Folder) Skills() []*Skill {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.snapshot.skills)
}

// Reload scans the folder now. The error names the invalid skills; they are not served until they
// are corrected.
func (f *Folder) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reload()
}

// current returns the content of the folder, scanned again if the last scan is not fresh.
func (f *Folder) current() *snapshot {
	now, fault := f.refresh()
	if fault != "" && f.srv.Logger != nil {
		f.srv.Logger.Warn("skills left out", "err", fault)
	}
	return now
}

// refresh scans if the last scan is not fresh. The result fault is the error of the scan, if it is
// a new one.
func (f *Folder) refresh() (now *snapshot, fault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.at) < fresh {
		return f.snapshot, ""
	}
	said := ""
	if err := f.reload(); err != nil {
		said = err.Error()
	}
	if said != f.said {
		f.said, fault = said, said
	}
	return f.snapshot, fault
}

// reload scans with f.mu held.
func (f *Folder) reload() error {
	next, err := scan(f.fsys, f.snapshot)
	f.at = time.Now()
	if next != nil {
		f.put(next)
	}
	if err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	return nil
}

// put serves the result of a scan: the server's resources become its files.
func (f *Folder) put(next *snapshot) {
	before := f.snapshot
	if before == nil {
		before = new(snapshot)
	}
	f.snapshot, f.at = next, time.Now()
	for uri := range before.files {
		if next.files[uri] == nil {
			f.srv.Remove(mcp.Feature{Kind: mcp.KindResource, Name: uri})
		}
	}
	for _, uri := range next.order() {
		s, old := next.files[uri], before.files[uri]
		if old == nil || described(old.resource) != described(s.resource) {
			mcp.AddResource(f.srv, s.resource, func(context.Context) (mcp.ResourceContents, error) { return f.contents(s) })
		}
		if old != nil && old.Digest != s.Digest {
			f.srv.ResourceUpdated(uri)
		}
	}
}

// description holds the data of a file's resource, to compare.
type description struct {
	name, description, mime string
	size                    int64
}

func described(r mcp.Resource) description {
	return description{r.Name, r.Description, r.MIMEType, r.Size}
}

// order returns the URIs of the files, skill by skill.
func (s *snapshot) order() []string {
	var out []string
	seen := map[string]bool{}
	add := func(uri string) {
		if !seen[uri] {
			seen[uri] = true
			out = append(out, uri)
		}
	}
	for _, skill := range s.skills {
		add(skill.URI)
		for _, file := range skill.Files {
			add(file.URI)
		}
	}
	return out
}

// contents reads the current content of a file.
func (f *Folder) contents(s *stored) (mcp.ResourceContents, error) {
	data, err := read(f.fsys, s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mcp.ResourceContents{}, mcp.ResourceNotFound(s.URI)
	case err != nil:
		return mcp.ResourceContents{}, err
	}
	c := mcp.ResourceContents{URI: s.URI, MIMEType: s.resource.MIMEType}
	if isText(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return c, nil
}

// visible reports whether the caller may see a file.
func (f *Folder) visible(ctx context.Context, uri string) bool {
	return f.srv.Visible == nil || f.srv.Visible(ctx, mcp.Feature{Kind: mcp.KindResource, Name: uri})
}

// list answers skills/list.
func (f *Folder) list(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	after, err := cursorOf(req)
	if err != nil {
		return nil, err
	}
	var res struct {
		Skills []*Skill `json:"skills"`
		Next   string   `json:"nextCursor,omitempty"`
		cached
	}
	res.Skills, res.cached = []*Skill{}, unkept
	files := 0
	for _, skill := range f.current().skills {
		if skill.URI <= after || !f.visible(ctx, skill.URI) {
			continue
		}
		if files += len(skill.Files); len(res.Skills) > 0 && (len(res.Skills) == pageSkills || files > pageFiles) {
			res.Next = cursor(res.Skills[len(res.Skills)-1].URI)
			break
		}
		res.Skills = append(res.Skills, skill)
	}
	return result(res)
}

// get answers skills/get.
func (f *Folder) get(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, err := uriParam(req)
	if err != nil {
		return nil, err
	}
	skill := f.current().skill(uri)
	if skill == nil || !f.visible(ctx, uri) {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "skills/get: no skill %q; see skills/list", text.Short(uri))
	}
	return result(struct {
		Skill *Skill `json:"skill"`
		cached
	}{skill, unkept})
}

// directory answers resources/directory/read.
func (f *Folder) directory(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, err := uriParam(req)
	if err != nil {
		return nil, err
	}
	after, err := cursorOf(req)
	if err != nil {
		return nil, err
	}
	children, ok := f.current().dirs[uri]
	if !ok {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "resources/directory/read: %q is not a folder here", text.Short(uri))
	}
	var res struct {
		Resources []*mcp.Resource `json:"resources"`
		Next      string          `json:"nextCursor,omitempty"`
	}
	res.Resources = []*mcp.Resource{}
	for _, c := range children {
		if c.URI <= after || c.MIMEType != directoryType && !f.visible(ctx, c.URI) {
			continue
		}
		if len(res.Resources) == pageChildren {
			res.Next = cursor(res.Resources[pageChildren-1].URI)
			break
		}
		res.Resources = append(res.Resources, c)
	}
	return result(res)
}

// cached holds the cache hints of results; these forbid caching, because the folder can change at
// any time and Server.Visible can depend on the caller.
type cached struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

var unkept = cached{0, "private"}

func result(v any) (mcp.Result, error) {
	raw, err := jsonx.Marshal(v)
	return mcp.RawResult(raw), err
}

func uriParam(req *mcp.Request) (string, error) {
	uri, err := jsonx.Unquote(req.Param("uri"))
	if err != nil {
		return "", mcp.Errorf(jsonrpc.CodeInvalidParams, `%s: "uri" must be a string`, req.Method)
	}
	return uri, nil
}

// Cursors hold the URI that they continue after, so that they stay valid across changes.
func cursor(after string) string { return base64.RawURLEncoding.EncodeToString([]byte("s1." + after)) }

func cursorOf(req *mcp.Request) (string, error) {
	raw := req.Param("cursor")
	if raw == nil || string(raw) == "null" {
		return "", nil
	}
	text, err := jsonx.Unquote(raw)
	if err == nil {
		var b []byte
		if b, err = base64.RawURLEncoding.DecodeString(text); err == nil && len(b) > 3 && string(b[:3]) == "s1." {
			return string(b[3:]), nil
		}
	}
	return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: the cursor is not one of this server; start without a cursor", req.Method)
}
