package skills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// ErrUnverified is wrapped by the error for content that differs from the skill's entry: the
// content was changed since, or tampered with. The content is not returned. [Get] fetches the
// current entry; an approval of the old one does not apply to it.
var ErrUnverified = errors.New("skills: not what the entry describes")

// Bounds of a listing, for servers whose pages have no end.
const (
	maxPages  = 10_000
	maxSkills = 100_000
)

// Offered reports whether the server of a session declares the extension.
func Offered(s *mcp.Session) bool { return s.Server().Capabilities.Has("extensions", Extension) }

// List iterates over the skills that a server lists; pages are fetched as needed, and no file is
// read. An invalid entry is reported and left out. A skill may exist without being listed: see
// [Get]. Names need not be unique.
//
// The error is [mcp.ErrNotSupported] if the server does not declare the extension.
func List(ctx context.Context, s *mcp.Session) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		if !Offered(s) {
			yield(nil, fmt.Errorf("skills/list: the server declares no %s: %w", Extension, mcp.ErrNotSupported))
			return
		}
		n := 0
		for raw, err := range pages(ctx, s, "skills/list", nil, "skills") {
			if err != nil {
				yield(nil, err)
				return
			}
			if n++; n > maxSkills {
				yield(nil, fmt.Errorf("skills/list: more than %d entries", maxSkills))
				return
			}
			skill := new(Skill)
			if err := jsonx.Unmarshal(raw, skill); err != nil {
				skill, err = nil, fmt.Errorf("skills/list: skills[%d]: %w", n-1, err)
				if !yield(skill, err) {
					return
				}
			} else if !yield(skill, nil) {
				return
			}
		}
	}
}

// pages iterates over the elements of a list in all its pages.
func pages(ctx context.Context, s *mcp.Session, method string, params map[string]any, member string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		cursor := ""
		for seen := map[[sha256.Size]byte]bool{}; ; {
			p := map[string]any{}
			for k, v := range params {
				p[k] = v
			}
			if cursor != "" {
				p["cursor"] = cursor
			}
			raw, err := s.Raw(ctx, method, p)
			if err != nil {
				yield(nil, err)
				return
			}
			list, _ := jsonx.Lookup(raw, member)
			if jsonx.KindOf(list) != '[' {
				yield(nil, fmt.Errorf("%s: the result has no array %q", method, member))
				return
			}
			for e := range jsonx.Elements(list) {
				if !yield(e, nil) {
					return
				}
			}
			next, _ := jsonx.Lookup(raw, "nextCursor")
			if cursor, err = jsonx.Unquote(next); err != nil || cursor == "" {
				return
			}
			mark := sha256.Sum256([]byte(cursor)) // it may be long
			if seen[mark] || len(seen) >= maxPages {
				yield(nil, fmt.Errorf("%s: the server's pages have no end: cursor %q comes again", method, text.Short(cursor)))
				return
			}
			seen[mark] = true
		}
	}
}

// Get fetches the entry of one skill, listed or not, by the URI of its SKILL.md.
func Get(ctx context.Context, s *mcp.Session, uri string) (*Skill, error) {
	if !Offered(s) {
		return nil, fmt.Errorf("skills/get: the server declares no %s: %w", Extension, mcp.ErrNotSupported)
	}
	raw, err := s.Raw(ctx, "skills/get", map[string]string{"uri": uri})
	if err != nil {
		return nil, err
	}
	var res struct {
		Skill *Skill `json:"skill"`
	}
	if err := jsonx.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("skills/get: %w", err)
	}
	if res.Skill == nil || res.Skill.URI != uri {
		return nil, fmt.Errorf("skills/get: the entry is not that of %q", text.Short(uri))
	}
	return res.Skill, nil
}

// Active is a skill whose SKILL.md was loaded and verified. It holds the entry that it was loaded
// with: files that the entry does not list cannot be read.
type Active struct {
	Skill *Skill
	Text  string // of the SKILL.md, with its front matter

	session *mcp.Session
}

// Load reads the SKILL.md of a skill and verifies it: size and digest against the entry's, unless
// the skill is dynamic, and each field of its front matter. Load a skill only when it is needed,
// and after any approval that it needs.
func Load(ctx context.Context, s *mcp.Session, skill *Skill) (*Active, error) {
	data, err := fetch(ctx, s, skill, skill.URI)
	if err != nil {
		return nil, err
	}
	got, err := frontmatter(data)
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w: %w", text.Short(skill.URI), err, ErrUnverified)
	}
	if !same(got, skill.Frontmatter) {
		return nil, fmt.Errorf("skill %q: the front matter of the file is not that of the entry: %w", text.Short(skill.URI), ErrUnverified)
	}
	return &Active{skill, string(data), s}, nil
}

// Read reads a file of the skill and verifies it. The argument file is a path relative to the
// skill's folder, as the SKILL.md refers to it, or a URI.
func (a *Active) Read(ctx context.Context, file string) ([]byte, error) {
	uri := file
	if !strings.Contains(file, "://") {
		if !tidy(file) {
			return nil, fmt.Errorf("skill %q: the path %q is outside of the skill", text.Short(a.Skill.URI), text.Short(file))
		}
		uri = strings.TrimSuffix(a.Skill.URI, manifest) + escapePath(file)
	}
	return fetch(ctx, a.session, a.Skill, uri)
}

// fetch reads one file of a skill.
func fetch(ctx context.Context, s *mcp.Session, skill *Skill, uri string) ([]byte, error) {
	want, err := skill.file(uri)
	if err != nil {
		return nil, err
	}
	res, err := s.ReadResource(ctx, uri)
	if err != nil {
		return nil, err
	}
	var data []byte
	found := false
	for _, c := range res.Contents {
		if c.URI != uri {
			continue
		}
		if data, found = c.Blob, true; data == nil {
			data = []byte(c.Text)
		}
		break
	}
	switch {
	case !found:
		err = errors.New("the answer has no contents of that URI")
	case want == nil && len(data) > MaxBytes:
		err = fmt.Errorf("it has %d bytes, over the limit of %d for a skill", len(data), MaxBytes)
	case want != nil && int64(len(data)) != want.Size:
		err = fmt.Errorf("it has %d bytes and not the %d of the entry", len(data), want.Size)
	case want != nil && digestOf(data) != want.Digest:
		err = fmt.Errorf("its digest is not %s", want.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w: %w", text.Short(uri), err, ErrUnverified)
	}
	return data, nil
}

// file returns the entry's description of a file, or nil if the skill is dynamic. A file that is
// not listed is an error, like a changed one.
func (s *Skill) file(uri string) (*File, error) {
	if s.Files == nil {
		root := strings.TrimSuffix(s.URI, manifest)
		if path, ok := strings.CutPrefix(uri, root); !ok || !tidy(path) {
			return nil, fmt.Errorf("read %q: the file is outside of the skill %q", text.Short(uri), text.Short(s.URI))
		}
		return nil, nil
	}
	for i := range s.Files {
		if s.Files[i].URI == uri {
			return &s.Files[i], nil
		}
	}
	return nil, fmt.Errorf("read %q: the entry of the skill lists no such file: %w", text.Short(uri), ErrUnverified)
}

// ReadDirectory lists the direct children of a folder, such as that of a skill: files as
// resources, folders as resources of the MIME type inode/directory. It shows the current state of
// the server, and adds nothing to an entry.
//
// The error is [mcp.ErrNotSupported] if the server does not declare directoryRead.
func ReadDirectory(ctx context.Context, s *mcp.Session, uri string) ([]*mcp.Resource, error) {
	settings := mcp.Capabilities{}
	_ = jsonx.Unmarshal(s.Server().Capabilities["extensions"], &settings)
	if on, _ := jsonx.Lookup(settings[Extension], "directoryRead"); string(on) != "true" {
		return nil, fmt.Errorf("resources/directory/read: the server does not declare it: %w", mcp.ErrNotSupported)
	}
	var out []*mcp.Resource
	for raw, err := range pages(ctx, s, "resources/directory/read", map[string]any{"uri": uri}, "resources") {
		if err != nil {
			return nil, err
		}
		r := new(mcp.Resource)
		if err := jsonx.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("resources/directory/read: resources[%d]: %w", len(out), err)
		}
		if out = append(out, r); len(out) > maxSkills {
			return nil, fmt.Errorf("resources/directory/read: more than %d entries", maxSkills)
		}
	}
	return out, nil
}

// same reports whether two JSON values are equal; the spelling of numbers does not matter.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.NewDecoder(bytes.NewReader(a)).Decode(&x) != nil || json.NewDecoder(bytes.NewReader(b)).Decode(&y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
