package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var layouts = template.Must(template.ParseFS(assets, "assets/page.html"))

const (
	contents      = "docs/README.md"
	packagesTitle = "Packages" // the last section, which is made of the sources
	programs      = "examples/programs.html"
)

// A site is what one build collects.
type site struct {
	repo     fs.FS
	pages    map[string]*page // by their file in the repository
	sections []section
	files    map[string][]byte // what is written, by its path in the site
	packages []*pkg
	examples map[string]bool // folders
	entries  []entry
	faults   []error
	moved    map[string]string // the part of a page that has an anchor, by PATH#ANCHOR of the first part
}

// A page is one HTML file of the site, or several if it is long.
type page struct {
	source  string // its file in the repository, or empty
	path    string // in the site
	title   string
	heads   []heading // of Markdown
	doc     *document // of Markdown
	listed  bool      // in the table of contents
	label   string    // there, if not the title
	section string
	dir     string // of a package
	under   string // what the search shows below an entry, if not the title
	prefix  string // of names of a package: its own and a dot

	out    strings.Builder // the chunk being written
	chunks []chunk
	main   *page   // the first part, if this is another
	part   int     // its number, or 0
	parts  []*page // all, if there are several
}

type heading struct {
	Level     int
	ID, Title string
}

// A section is a heading of the table of contents with its links.
type section struct {
	Title string
	Path  string // of its list
	Pages []*page
}

// An entry is what the search can find.
type entry struct {
	title  string
	page   *page
	anchor string
	text   string
	inside bool // of the heading above
}

// fault records an error of a file, at the line of the offset. A negative offset is the first line.
func (s *site) fault(file string, text []byte, offset int, format string, args ...any) {
	line := 1
	if offset > 0 {
		line += bytes.Count(text[:min(offset, len(text))], []byte("\n"))
	}
	s.faults = append(s.faults, &fault{file, line, fmt.Sprintf(format, args...)})
}

type fault struct {
	file string
	line int
	text string
}

func (f *fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }

// generate returns the files of the site of a repository, or all faults of its pages.
func generate(repo fs.FS) (map[string][]byte, error) {
	s := &site{repo: repo, pages: map[string]*page{}, files: map[string][]byte{}, examples: map[string]bool{}, moved: map[string]string{}}
	if err := s.read(); err != nil {
		return nil, err
	}
	if err := s.readPackages(); err != nil {
		return nil, err
	}
	s.readContents()
	pages := s.order()
	for _, p := range pages {
		s.resolve(p)
	}
	if len(s.faults) > 0 {
		slices.SortStableFunc(s.faults, func(a, b error) int { return strings.Compare(a.(*fault).file, b.(*fault).file) })
		return nil, errors.Join(s.faults...)
	}
	for _, p := range pages {
		if err := s.render(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
	}
	if err := s.readPrograms(); err != nil {
		return nil, err
	}
	s.renderPackages()
	return s.files, s.finish()
}

// order returns the pages of all sections.
func (s *site) order() (pages []*page) {
	for _, sec := range s.sections {
		pages = append(pages, sec.Pages...)
	}
	return pages
}

// read finds the Markdown of the repository: docs with its folders, the root, and examples.
func (s *site) read() error {
	var names []string
	for _, pattern := range []string{"*.md", "examples/README.md", "docs/*.md", "docs/*/*.md"} {
		found, err := fs.Glob(s.repo, pattern)
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	for _, name := range names {
		text, err := fs.ReadFile(s.repo, name)
		if err != nil {
			return err
		}
		p := &page{source: name, path: target(name)}
		s.pages[name] = p
		p.doc = s.parse(p, text)
	}
	if s.pages[contents] == nil || s.pages["README.md"] == nil {
		return fmt.Errorf("the repository has no %s or no README.md", contents)
	}
	return nil
}

// target returns the file of the site that shows a file of the repository.
func target(name string) string {
	dir, base := path.Split(name)
	switch {
	case base == "README.md":
		return dir + "index.html"
	case path.Ext(base) == ".md":
		return dir + strings.TrimSuffix(base, ".md") + ".html"
	case path.Ext(base) == ".go":
		return name + ".html"
	}
	return name
}

// readContents makes the sections of the table of contents, in which each page must be once.
func (s *site) readContents() {
	c := s.pages[contents]
	c.listed = true
	for _, item := range c.doc.items {
		name := path.Join(path.Dir(contents), item.link)
		p := s.pages[name]
		if p == nil {
			continue // a link to something else; resolve looks at it
		}
		if p.listed {
			s.fault(contents, c.doc.text, item.offset, "%s is in the contents twice", name)
			continue
		}
		p.listed, p.section, p.label = true, item.section, item.text
		if n := len(s.sections); n == 0 || s.sections[n-1].Title != item.section {
			at := slices.IndexFunc(c.heads, func(h heading) bool { return h.Title == item.section })
			s.sections = append(s.sections, section{Title: item.section, Path: c.path + "#" + c.heads[at].ID})
		}
		last := &s.sections[len(s.sections)-1]
		last.Pages = append(last.Pages, p)
	}
	for _, p := range s.pages {
		if !p.listed {
			s.fault(p.source, nil, -1, "this page is not in the contents (%s)", contents)
		}
	}
	if len(s.sections) > 0 {
		c.section = s.sections[0].Title
		s.sections[0].Pages = append([]*page{c}, s.sections[0].Pages...)
	}
	for i, first := 0, map[string]bool{}; i < len(s.sections); i++ {
		if first[s.sections[i].Title] {
			s.fault(contents, nil, -1, "the section %q is there twice", s.sections[i].Title)
		}
		first[s.sections[i].Title] = true
	}
}

// finish divides long pages, puts all into their frame, and writes the index of the search.
func (s *site) finish() error {
	list := s.packageList()
	s.sections = append(s.sections, section{Title: packagesTitle, Path: list.path})
	order := append(s.order(), list)
	for _, p := range s.packages {
		order = append(order, p.page)
	}
	var parts []*page
	for _, p := range order {
		parts = append(parts, s.split(p)...)
	}
	for i, p := range parts {
		var before, after *page
		if i > 0 {
			before = parts[i-1]
		}
		if i+1 < len(parts) {
			after = parts[i+1]
		}
		if err := s.frame(p, before, after); err != nil {
			return err
		}
	}
	index, err := s.searchIndex()
	if err != nil {
		return err
	}
	s.files[mark] = index
	return s.assets(order)
}

// assets adds the style and the script. The script has the pages of each section once for all, as [label, path], and adds them to the
// navigation of a page, which without scripts has the sections alone.
func (s *site) assets(order []*page) error {
	lists := make([][][2]string, len(s.sections))
	for i, sec := range s.sections {
		for _, p := range order {
			if p.section == sec.Title && p.path != sec.Path {
				lists[i] = append(lists[i], [2]string{p.Label(), p.path})
			}
		}
	}
	data, err := json.Marshal(lists)
	if err != nil {
		return err
	}
	script, err := assets.ReadFile("assets/site.js")
	if err != nil {
		return err
	}
	s.files["site.js"] = fmt.Appendf(nil, "const contents = %s;\n%s", data, script)
	s.files["style.css"], err = assets.ReadFile("assets/style.css")
	return err
}

// frame writes a page with its header, navigation and footer.
func (s *site) frame(p, before, after *page) error {
	var body, out strings.Builder
	for _, c := range p.chunks {
		body.WriteString(c.html)
	}
	err := layouts.ExecuteTemplate(&out, "page.html", map[string]any{
		"Page": p, "Body": template.HTML(body.String()), "Sections": s.sections, "Before": before, "After": after,
		"Root": strings.Repeat("../", strings.Count(p.path, "/")),
	})
	if err != nil {
		return err
	}
	s.files[p.path] = []byte(s.linked(out.String(), p.path))
	if n := len(s.files[p.path]); n > largest {
		err = fmt.Errorf("%s has %d bytes, more than %d: divide its longest section by headings", p.path, n, largest)
	}
	return err
}

// These are for the template.

func (p *page) Title() string   { return p.title }
func (p *page) Path() string    { return p.path }
func (p *page) Section() string { return p.section }
func (p *page) Part() int       { return p.part }
func (p *page) Parts() []*page  { return p.parts }

// Label returns the name in the table of contents.
func (p *page) Label() string { return cmp.Or(p.label, p.title) }

// Name returns the title, with the number of a part.
func (p *page) Name() string {
	if p.part > 1 {
		return fmt.Sprintf("%s, part %d", p.title, p.part)
	}
	return p.title
}
