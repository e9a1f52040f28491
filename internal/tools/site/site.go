package main

import (
	"bytes"
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

var layouts = template.Must(template.ParseFS(assets, "assets/page.html", "assets/nav.html"))

const (
	contents      = "docs/README.md"
	packagesTitle = "Packages" // the last section, which is made of the sources
)

// A site is what one build collects.
type site struct {
	repo     fs.FS
	pages    map[string]*page // by their file in the repository
	sections []section
	files    map[string][]byte // what is written, by its path in the site
	packages []*pkg
	entries  []entry
	faults   []error
	navs     map[string]string // see navigation
}

// A page is one HTML file of the site.
type page struct {
	source  string // its file in the repository, or empty
	path    string // in the site
	title   string
	body    template.HTML
	heads   []heading
	doc     *document // of Markdown
	listed  bool      // in the table of contents
	section string
}

type heading struct {
	Level     int
	ID, Title string
}

// A section is a heading of the table of contents with its links.
type section struct {
	Title string
	Pages []*page
}

// An entry is what the search can find.
type entry struct {
	title, under string
	url          string // relative to the root of the site
	text         string
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
	s := &site{repo: repo, pages: map[string]*page{}, files: map[string][]byte{}, navs: map[string]string{}}
	if err := s.read(); err != nil {
		return nil, err
	}
	if err := s.readPackages(); err != nil {
		return nil, err
	}
	s.readContents()
	var order []*page
	for _, sec := range s.sections {
		order = append(order, sec.Pages...)
	}
	for _, p := range order {
		s.resolve(p)
	}
	if len(s.faults) > 0 {
		slices.SortStableFunc(s.faults, func(a, b error) int { return strings.Compare(a.(*fault).file, b.(*fault).file) })
		return nil, errors.Join(s.faults...)
	}
	for _, p := range order {
		if err := s.render(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
	}
	s.renderPackages()
	for _, name := range []string{"style.css", "site.js"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		s.files[name] = data
	}
	return s.files, s.finish(order)
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
		p.listed, p.section = true, item.section
		if n := len(s.sections); n == 0 || s.sections[n-1].Title != item.section {
			s.sections = append(s.sections, section{Title: item.section})
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

// finish puts the pages into their frame, and writes the index of the search.
func (s *site) finish(order []*page) error {
	list := section{Title: packagesTitle, Pages: []*page{s.packageList()}}
	s.sections = append(s.sections, list)
	for _, p := range s.packages {
		list.Pages = append(list.Pages, p.page)
	}
	order = append(slices.Clip(order), list.Pages...)
	for i, p := range order {
		var before, after *page
		if i > 0 {
			before = order[i-1]
		}
		if i+1 < len(order) {
			after = order[i+1]
		}
		if err := s.frame(p, before, after); err != nil {
			return err
		}
	}
	for _, p := range s.pages { // sources
		if p.doc == nil {
			if err := s.frame(p, nil, nil); err != nil {
				return err
			}
		}
	}
	var rows [][4]string
	for _, e := range s.entries {
		rows = append(rows, [4]string{e.title, e.under, e.url, e.text})
	}
	index, err := json.Marshal(rows)
	s.files[mark] = append(append([]byte("const entries = "), index...), ";\n"...)
	return err
}

// frame writes a page with its header, navigation and footer.
func (s *site) frame(p, before, after *page) error {
	root := strings.Repeat("../", strings.Count(p.path, "/"))
	nav, err := s.navigation(p, root)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = layouts.ExecuteTemplate(&out, "page.html", map[string]any{
		"Title": p.title, "Body": p.body, "Nav": template.HTML(nav), "Before": before, "After": after,
		"Heads": slices.DeleteFunc(slices.Clone(p.heads), func(h heading) bool { return h.Level == 1 || h.Level > 3 }),
		"Root":  root,
	})
	s.files[p.path] = out.Bytes()
	return err
}

// navigation returns the table of contents for a page. It is made once for each depth of folders, since it is most of a small page.
func (s *site) navigation(p *page, root string) (string, error) {
	key, sections := root, s.sections
	if p.section == packagesTitle { // other pages name only the list of packages
		key += packagesTitle
		list := section{Title: packagesTitle, Pages: slices.Clone(sections[len(sections)-1].Pages)}
		for _, other := range s.packages {
			list.Pages = append(list.Pages, other.page)
		}
		sections = append(slices.Clone(sections[:len(sections)-1]), list)
	}
	if s.navs[key] == "" {
		var out strings.Builder
		if err := layouts.ExecuteTemplate(&out, "nav.html", map[string]any{"Root": root, "Sections": sections}); err != nil {
			return "", err
		}
		s.navs[key] = out.String()
	}
	nav := strings.Replace(s.navs[key], `<a href="`+root+p.path+`">`, `<a href="`+root+p.path+`" aria-current="page">`, 1)
	return strings.Replace(nav, "<details><summary>"+template.HTMLEscapeString(p.section)+"<", "<details open><summary>"+template.HTMLEscapeString(p.section)+"<", 1), nil
}

// Title and Path are for the template.
func (p *page) Title() string { return p.title }
func (p *page) Path() string  { return p.path }

// relative returns the link from one page of the site to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}
