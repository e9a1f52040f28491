package skills

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxEntries bounds the files and folders of one scan.
const maxEntries = 100_000

// snapshot is the content of a folder at one moment. It is immutable.
type snapshot struct {
	skills []*Skill                   // by URI
	files  map[string]*stored         // by URI
	dirs   map[string][]*mcp.Resource // children by URI of the folder, by URI
}

// stored is one file that is served.
type stored struct {
	File
	path     string // in the folder
	modified time.Time
	text     bool
	resource mcp.Resource

	// For a SKILL.md: its front matter as JSON, or its fault. In an outer skill it is a file like
	// any other.
	front    json.RawMessage
	frontErr error
}

// found is one file that a walk found.
type found struct {
	path string
	info fs.FileInfo
}

// scan reads a folder. Unchanged files are taken from before, which may be nil. An invalid skill
// is left out; the error has the reason for each.
func scan(fsys fs.FS, before *snapshot) (*snapshot, error) {
	files, faults, err := walk(fsys)
	if err != nil {
		return nil, err
	}
	out := &snapshot{files: map[string]*stored{}, dirs: map[string][]*mcp.Resource{}}
	var errs []error
	for _, f := range files {
		root, ok := skillRoot(f.path)
		if !ok {
			continue
		}
		skill, kept, err := readSkill(fsys, root, files, faults, before, out.files)
		if err != nil {
			errs = append(errs, fmt.Errorf("skill %q: %w", text.Short(root), err))
			continue
		}
		out.skills = append(out.skills, skill)
		for _, s := range kept {
			out.files[s.URI] = s
		}
	}
	slices.SortFunc(out.skills, func(a, b *Skill) int { return cmp.Compare(a.URI, b.URI) })
	out.index()
	return out, errors.Join(errs...)
}

// skillRoot returns the folder of the skill whose SKILL.md is at a path.
func skillRoot(p string) (string, bool) {
	if path.Base(p) != manifest {
		return "", false
	}
	return path.Dir(p), true
}

// walk returns the files of a folder, in order, and the faults of those that cannot be served, by
// path. It skips names that begin with a dot.
func walk(fsys fs.FS) (files []found, faults map[string]error, err error) {
	faults = map[string]error{}
	entries := 0
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("more than %d files and folders", maxEntries)
		}
		switch {
		case p == ".":
			return nil
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			faults[p] = errors.New("is a symbolic link, which is not served")
			return nil
		case !d.Type().IsRegular():
			faults[p] = errors.New("is not a regular file")
			return nil
		case !utf8.ValidString(p):
			faults[p] = errors.New("has a name that is not UTF-8")
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed in the meantime
		}
		if err != nil {
			return err
		}
		files = append(files, found{p, info})
		return nil
	})
	return files, faults, err
}

// readSkill builds the entry of the skill whose folder is the parameter root, and returns it with its
// files. The parameter known holds files that were read already, with nested skills, by their path.
func readSkill(fsys fs.FS, root string, files []found, faults map[string]error, before *snapshot, known map[string]*stored) (*Skill, []*stored, error) {
	if root == "." {
		return nil, nil, fmt.Errorf("%s is not in a folder: put it in one with the name of the skill", manifest)
	}
	for seg := range strings.SplitSeq(path.Dir(root), "/") {
		if seg != "." && strings.Trim(strings.ToLower(seg), "abcdefghijklmnopqrstuvwxyz0123456789-_~") != "" {
			return nil, nil, fmt.Errorf("the folder name %q must have only letters, digits, - and _, since it is part of a URI", text.Short(seg))
		}
	}
	within := func(p string) bool { return strings.HasPrefix(p, root+"/") }
	for p, fault := range faults {
		if within(p) {
			return nil, nil, fmt.Errorf("%q %w", text.Short(p), fault)
		}
	}
	var mine []found
	var total int64
	for _, f := range files {
		if within(f.path) {
			mine = append(mine, f)
			total += f.info.Size()
		}
	}
	// Before anything is read.
	if len(mine) > MaxFiles {
		return nil, nil, fmt.Errorf("it has %d files, over the limit of %d", len(mine), MaxFiles)
	}
	if total > MaxBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, over the limit of %d", total, MaxBytes)
	}
	skill := &Skill{URI: uriOf(root + "/" + manifest), Files: []File{}}
	var kept []*stored
	for _, f := range mine {
		s := known[uriOf(f.path)]
		if s == nil {
			var err error
			if s, err = readFile(fsys, f, before); err != nil {
				return nil, nil, err
			}
		}
		if s.URI == skill.URI {
			if s.frontErr != nil {
				return nil, nil, s.frontErr
			}
			skill.Frontmatter = s.front
		}
		kept = append(kept, s)
		skill.Files = append(skill.Files, s.File)
	}
	if err := skill.check(); err != nil {
		return nil, nil, err
	}
	for _, s := range kept {
		// Files from before have them already, and are being served.
		if s.URI == skill.URI && s.resource.Description != skill.Description {
			s.resource.Name, s.resource.Description = skill.Name, skill.Description
		}
	}
	return skill, kept, nil
}

// readFile reads one file to compute its digest, unless before has it.
func readFile(fsys fs.FS, f found, before *snapshot) (*stored, error) {
	uri := uriOf(f.path)
	if before != nil {
		// Without modification times a change cannot be detected.
		if s := before.files[uri]; s != nil && s.Size == f.info.Size() && !s.modified.IsZero() && s.modified.Equal(f.info.ModTime()) {
			return s, nil
		}
	}
	data, err := read(fsys, f.path)
	if err != nil {
		return nil, err
	}
	s := &stored{path: f.path, modified: f.info.ModTime(), text: isText(data)}
	s.File = File{uri, digestOf(data), int64(len(data))}
	s.resource = mcp.Resource{URI: uri, Name: path.Base(f.path), MIMEType: mimeType(f.path, s.text), Size: s.Size}
	if path.Base(f.path) == manifest {
		s.front, s.frontErr = frontmatter(data)
	}
	return s, nil
}

// read reads a file whose path has no symbolic links.
func read(fsys fs.FS, name string) ([]byte, error) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := fs.Lstat(fsys, name[:i])
		if err != nil {
			return nil, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("%q is a symbolic link, which is not served", text.Short(name[:i]))
		case i == len(name) && !info.Mode().IsRegular(): // opening a pipe may block
			return nil, fmt.Errorf("%q is not a regular file", text.Short(name))
		}
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%q is not a regular file", text.Short(name)), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("%q has more than %d bytes", text.Short(name), MaxBytes)
	}
	return data, err
}

// index lists what each folder holds.
func (s *snapshot) index() {
	seen := map[string]bool{}
	for _, f := range s.files {
		child := &f.resource
		for dir := path.Dir(f.path); !seen[child.URI]; dir = path.Dir(dir) {
			seen[child.URI] = true
			if dir == "." {
				break
			}
			uri := uriOf(dir)
			s.dirs[uri] = append(s.dirs[uri], child)
			child = &mcp.Resource{URI: uri, Name: path.Base(dir), MIMEType: directoryType}
		}
	}
	for _, children := range s.dirs {
		slices.SortFunc(children, func(a, b *mcp.Resource) int { return cmp.Compare(a.URI, b.URI) })
	}
}

// skill returns the skill of that URI, or nil if there is none.
func (s *snapshot) skill(uri string) *Skill {
	i, ok := slices.BinarySearchFunc(s.skills, uri, func(a *Skill, uri string) int { return cmp.Compare(a.URI, uri) })
	if !ok {
		return nil
	}
	return s.skills[i]
}

// uriOf returns the URI of a path in the folder.
func uriOf(p string) string { return "skill://" + escapePath(p) }

// escapePath escapes the segments of a path for use in a URI.
func escapePath(p string) string {
	segs := strings.Split(p, "/")
	for i, seg := range segs {
		segs[i] = url.PathEscape(seg)
	}
	return strings.Join(segs, "/")
}

// isText reports whether a file can be sent as text unchanged.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

const directoryType = "inode/directory"

// mimeTypes by ending. They do not depend on the system, so that a folder is the same on every
// machine.
var mimeTypes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript",
	".json": "application/json", ".md": "text/markdown", ".py": "text/x-python", ".sh": "application/x-sh",
	".svg": "image/svg+xml", ".toml": "application/toml", ".ts": "text/x-typescript", ".txt": "text/plain",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".pdf": "application/pdf", ".png": "image/png",
	".webp": "image/webp", ".zip": "application/zip",
}

func mimeType(p string, text bool) string {
	if t := mimeTypes[strings.ToLower(path.Ext(p))]; t != "" {
		return t
	}
	if text {
		return "text/plain"
	}
	return "application/octet-stream"
}
