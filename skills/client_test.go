package skills_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/skills"
)

// tampering is a server of skills whose reads a test can change, and that records the reads.
type tampering struct {
	change func(uri string, c *mcp.ResourceContents)
	reads  []string
}

func (x *tampering) serve(t testing.TB) *mcp.Session {
	t.Helper()
	srv, _ := served(t, folder())
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			if req.Method != "resources/read" || err != nil {
				return res, err
			}
			out := *res.(*mcp.ReadResult)
			out.Contents = append([]mcp.ResourceContents(nil), out.Contents...)
			x.reads = append(x.reads, out.Contents[0].URI)
			if x.change != nil {
				x.change(out.Contents[0].URI, &out.Contents[0])
			}
			return &out, nil
		})
	})
	return mcptest.Connect(t, srv, client(), mcp.V2025_11_25)
}

// A SKILL.md that differs from its entry is not loaded, and no further file is read.
func TestLoadVerifies(t *testing.T) {
	tests := []struct {
		name  string
		entry func(*skills.Skill)
		read  func(*mcp.ResourceContents)
		want  string
	}{
		{"digest", nil, func(c *mcp.ResourceContents) { c.Text = strings.Replace(c.Text, "# pdf", "# PDF", 1) }, "digest"},
		{"size", nil, func(c *mcp.ResourceContents) { c.Text += "more" }, "bytes"},
		{"another URI", nil, func(c *mcp.ResourceContents) { c.URI = "skill://other/SKILL.md" }, "no contents"},
		{"front matter", func(s *skills.Skill) { s.Frontmatter = []byte(`{"name":"pdf","description":"About PDF."}`) }, nil, "front matter"},
		{"front matter with less", func(s *skills.Skill) { s.Frontmatter = []byte(`{"name":"pdf"}`) }, nil, "front matter"},
		{"front matter with more", func(s *skills.Skill) {
			s.Frontmatter = []byte(`{"name":"pdf","description":"About pdf.","allowed-tools":"sh"}`)
		}, nil, "front matter"},
		{"dynamic", func(s *skills.Skill) { s.Files = nil }, func(c *mcp.ResourceContents) { c.Text = "---\nname: x\n---\n" }, "front matter"},
		{"dynamic without", func(s *skills.Skill) { s.Files = nil }, func(c *mcp.ResourceContents) { c.Text = "x" }, "no front matter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := &tampering{}
			if tt.read != nil {
				x.change = func(_ string, c *mcp.ResourceContents) { tt.read(c) }
			}
			s := x.serve(t)
			skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
			if err != nil {
				t.Fatal(err)
			}
			if tt.entry != nil {
				tt.entry(skill)
			}
			active, err := skills.Load(t.Context(), s, skill)
			if active != nil || !errors.Is(err, skills.ErrUnverified) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load = %v, %v, want ErrUnverified with %q", active, err, tt.want)
			}
			if len(x.reads) != 1 {
				t.Errorf("reads = %q, want one", x.reads)
			}
		})
	}
}

// Numbers may be spelled differently in an entry.
func TestLoadTakesOtherSpellings(t *testing.T) {
	srv := &mcp.Server{Name: "s"}
	files := folder()
	files["pdf/SKILL.md"] = file("---\nname: pdf\ndescription: d\nmetadata: {n: 1.0, s: '1.0'}\n---\n")
	if _, err := skills.Serve(srv, files); err != nil {
		t.Fatal(err)
	}
	s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	skill.Frontmatter = []byte(`{"metadata":{"s":"1.0","n":1e0},"description":"d","name":"pdf"}`)
	if _, err := skills.Load(t.Context(), s, skill); err != nil {
		t.Error(err)
	}
}

// Listing reads no file, and loading reads only the SKILL.md.
func TestNothingIsReadAhead(t *testing.T) {
	x := &tampering{}
	s := x.serve(t)
	uris(t, s)
	skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
	if err != nil || len(x.reads) != 0 {
		t.Fatalf("List and Get read %q (%v), want nothing", x.reads, err)
	}
	if _, err := skills.Load(t.Context(), s, skill); err != nil || fmt.Sprint(x.reads) != "[skill://pdf/SKILL.md]" {
		t.Errorf("Load read %q (%v), want the SKILL.md alone", x.reads, err)
	}
}

// A file that was changed, or that the entry does not list, is not returned; an unlisted file is
// not even requested.
func TestReadVerifies(t *testing.T) {
	x := &tampering{change: func(uri string, c *mcp.ResourceContents) {
		if strings.HasSuffix(uri, "raw.bin") {
			c.Blob[1]++
		}
	}}
	s := x.serve(t)
	skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	active, err := skills.Load(t.Context(), s, skill)
	if err != nil {
		t.Fatal(err)
	}
	x.reads = nil
	if got, err := active.Read(t.Context(), "forms/raw.bin"); got != nil || !errors.Is(err, skills.ErrUnverified) {
		t.Errorf("changed: Read = %q, %v, want ErrUnverified", got, err)
	}
	for _, name := range []string{"none.md", "../acme/billing/refunds/SKILL.md", "/etc/passwd", "", "forms", "skill://acme/billing/refunds/SKILL.md", "file:///etc/passwd"} {
		if got, err := active.Read(t.Context(), name); err == nil {
			t.Errorf("Read(%q) = %q", name, got)
		}
	}
	if len(x.reads) != 1 {
		t.Errorf("reads = %q, want one", x.reads)
	}
}

// A dynamic skill is confined to its folder.
func TestDynamicSkill(t *testing.T) {
	s := new(tampering).serve(t)
	skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	skill.Files = nil
	active, err := skills.Load(t.Context(), s, skill)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := active.Read(t.Context(), "forms/a b.md"); err != nil || string(got) != "# A b\n" {
		t.Errorf("Read = %q, %v", got, err)
	}
	for _, name := range []string{"../pdf/SKILL.md", "skill://acme/billing/refunds/SKILL.md", "skill://pdf/../acme/billing/refunds/SKILL.md"} {
		if got, err := active.Read(t.Context(), name); err == nil {
			t.Errorf("Read(%q) = %q", name, got)
		}
	}
}

// An invalid entry is reported with its place and left out; endless pages are detected.
func TestListOfABadServer(t *testing.T) {
	srv := &mcp.Server{Name: "s", Extensions: map[string]jsonRaw{skills.Extension: jsonRaw(`{}`)}}
	srv.HandleMethod("skills/list", func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(`{"skills":[null,{"uri":"skill://a/SKILL.md"},{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d"},"resources":"dynamic"}],"nextCursor":"again"}`), nil
	})
	s := mcptest.Connect(t, srv, client(), mcp.V2025_11_25)
	var got []string
	for skill, err := range skills.List(t.Context(), s) {
		if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, skill.URI)
		}
	}
	if len(got) != 7 || !strings.Contains(got[0], "skills[0]") || !strings.Contains(got[1], "skills[1]") || got[2] != "skill://a/SKILL.md" || !strings.Contains(got[6], "no end") {
		t.Errorf("List gave %q", got)
	}
	if _, err := skills.ReadDirectory(t.Context(), s, "skill://a"); !errors.Is(err, mcp.ErrNotSupported) {
		t.Errorf("ReadDirectory: %v, want ErrNotSupported", err)
	}
}
