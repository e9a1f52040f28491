package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Extension identifies the extension in the capabilities of a server.
const Extension = "io.modelcontextprotocol/skills"

// Limits of one skill that every host accepts, and that a server therefore applies.
const (
	MaxFiles = 512      // files of a skill, with its SKILL.md
	MaxBytes = 16 << 20 // of all its files
)

const manifest = "SKILL.md"

// Skill is the entry of one skill, which a host gets before it reads any of its files.
type Skill struct {
	URI  string // of its SKILL.md
	Name string // from the front matter; the last segment of the skill's path

	// Description is that of the front matter.
	Description string

	// Frontmatter is the front matter of the SKILL.md as a JSON object, with all fields.
	Frontmatter json.RawMessage

	// Files are all files of the skill, its SKILL.md among them. If nil, the skill is dynamic; its
	// content is generated when read and cannot be verified.
	Files []File
}

// File is one file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // "sha256:" and 64 lowercase hex digits
	Size   int64  `json:"size"`   // bytes
}

// entry is a Skill on the wire.
type entry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"`
}

// MarshalJSON returns the form of the extension.
func (s *Skill) MarshalJSON() ([]byte, error) {
	e := entry{s.URI, s.Frontmatter, json.RawMessage(`"dynamic"`)}
	if s.Files != nil {
		var err error
		if e.Resources, err = jsonx.Marshal(s.Files); err != nil {
			return nil, err
		}
	}
	return jsonx.Marshal(e)
}

// UnmarshalJSON reads the form of the extension. An entry that violates a rule of the extension,
// or a limit, is an error.
func (s *Skill) UnmarshalJSON(data []byte) error {
	var e entry
	if err := jsonx.Unmarshal(data, &e); err != nil {
		return err
	}
	out := Skill{URI: e.URI, Frontmatter: e.Frontmatter}
	switch jsonx.KindOf(e.Resources) {
	case '[':
		if err := jsonx.Unmarshal(e.Resources, &out.Files); err != nil {
			return fmt.Errorf("skill %q: %w", text.Short(e.URI), err)
		}
		if out.Files == nil {
			out.Files = []File{}
		}
	default:
		if string(e.Resources) != `"dynamic"` {
			return fmt.Errorf(`skill %q: resources must be a list of files or "dynamic"`, text.Short(e.URI))
		}
	}
	if err := out.check(); err != nil {
		return fmt.Errorf("skill %q: %w", text.Short(e.URI), err)
	}
	*s = out
	return nil
}

// check validates an entry, and sets the fields from its front matter.
func (s *Skill) check() error {
	root, ok := strings.CutSuffix(s.URI, "/"+manifest)
	_, path, hasScheme := strings.Cut(root, "://")
	if !ok || !hasScheme || path == "" {
		return fmt.Errorf("its URI must be scheme://path/%s", manifest)
	}
	if jsonx.KindOf(s.Frontmatter) != '{' {
		return errors.New("the front matter must be an object")
	}
	var required struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if err := jsonx.Unmarshal(s.Frontmatter, &required); err != nil {
		return fmt.Errorf("front matter: %w", err)
	}
	s.Name, s.Description = required.Name, required.Description
	if err := checkName(s.Name); err != nil {
		return err
	}
	if s.Description == "" {
		return errors.New("the front matter has no description")
	}
	if last := path[strings.LastIndexByte(path, '/')+1:]; last != s.Name {
		return fmt.Errorf("the folder is %q and the name in the front matter %q: they must be the same", text.Short(last), s.Name)
	}
	if s.Files == nil {
		return nil
	}
	return s.checkFiles(root)
}

func (s *Skill) checkFiles(root string) error {
	if len(s.Files) > MaxFiles {
		return fmt.Errorf("it has %d files, over the limit of %d", len(s.Files), MaxFiles)
	}
	seen := make(map[string]bool, len(s.Files))
	var total int64
	for _, f := range s.Files {
		file, inside := strings.CutPrefix(f.URI, root+"/")
		switch {
		case !inside || !tidy(file):
			return fmt.Errorf("the file %q is outside of the skill", text.Short(f.URI))
		case seen[f.URI]:
			return fmt.Errorf("the file %q is listed twice", text.Short(f.URI))
		case !isDigest(f.Digest):
			return fmt.Errorf("the file %q has the digest %q: want sha256: and 64 lowercase hex digits", text.Short(f.URI), text.Short(f.Digest))
		case f.Size < 0 || f.Size > MaxBytes:
			return fmt.Errorf("the file %q has a size of %d bytes, want 0 to %d", text.Short(f.URI), f.Size, MaxBytes)
		}
		seen[f.URI] = true
		total += f.Size
	}
	switch {
	case !seen[s.URI]:
		return fmt.Errorf("its files do not name %s itself", manifest)
	case total > MaxBytes:
		return fmt.Errorf("it has %d bytes, over the limit of %d", total, MaxBytes)
	}
	return nil
}

// tidy reports whether a path has neither empty segments nor dot segments.
func tidy(path string) bool {
	for seg := range strings.SplitSeq(path, "/") {
		switch strings.ToLower(strings.ReplaceAll(strings.ToLower(seg), "%2e", ".")) {
		case "", ".", "..":
			return false
		}
	}
	return true
}

// checkName checks a name against the rules of Agent Skills: 1 to 64 lowercase letters, digits
// and single hyphens between them.
func checkName(name string) error {
	ok := len(name) >= 1 && len(name) <= 64 && name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
	for i := range len(name) {
		c := name[i]
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-')
	}
	if !ok {
		return fmt.Errorf("the name %q must be 1 to 64 of a-z, 0-9 and single hyphens between them", text.Short(name))
	}
	return nil
}

// digestOf returns the digest of a file's bytes.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}
