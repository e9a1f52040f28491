// Package apidoc shows what becomes of an OpenAPI document.
package apidoc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/openapi"
)

// Document are the arguments that name a document.
type Document struct {
	From    string `arg:"" name:"document" help:"File or URL of the document."`
	Private bool   `name:"allow-private" help:"Also read it on this machine and private networks."`
}

// Read reads the document, from servers whose certificates a CA of a file has signed, too; empty: the system's alone.
func (d *Document) Read(ctx context.Context, ca string) (*Report, error) {
	secure, err := tlsfiles.Client(ca, "", "")
	if err != nil {
		return nil, err
	}
	data, _, err := openapi.Load(ctx, d.From, d.Private, secure)
	if err != nil {
		return nil, err
	}
	doc, err := openapi.Parse(data)
	if place := (*openapi.Fault)(nil); errors.As(err, &place) {
		return nil, fmt.Errorf("%s:%w", d.From, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.From, err)
	}
	r := &Report{Revision: doc.Revision, Title: doc.Title, Server: doc.Server, Schemes: doc.Schemes()}
	for _, o := range doc.Operations {
		r.Operations = append(r.Operations, Operation{o.Name, o.Method, o.Path, o.Line})
	}
	for _, f := range doc.Unmapped {
		r.Unmapped = append(r.Unmapped, Unmapped{f.Line, f.Column, f.Place, f.Text})
	}
	return r, nil
}

// Report is what becomes of a document.
type Report struct {
	Revision   string      `json:"revision"` // of OpenAPI
	Title      string      `json:"title"`
	Server     string      `json:"server"`
	Schemes    []string    `json:"securitySchemes"`
	Operations []Operation `json:"operations"`
	Unmapped   []Unmapped  `json:"unmapped"`
}

// Operation is one that is mapped.
type Operation struct {
	Tool   string `json:"tool"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Line   int    `json:"line"`
}

// Unmapped is a part that is not.
type Unmapped struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Place  string `json:"place"`
	Reason string `json:"reason"`
}

// Grid returns a table of the tools.
func (r *Report) Grid() *screen.Grid {
	g := &screen.Grid{Right: []bool{false, false, false, true}}
	g.Add("TOOL", "METHOD", "PATH", "LINE")
	for _, o := range r.Operations {
		g.Add(o.Tool, o.Method, o.Path, fmt.Sprint(o.Line))
	}
	return g
}

// Summary returns the parts of a document that are not mapped, one in a line, and how many there are of everything.
func (r *Report) Summary(from string) string {
	var b strings.Builder
	for _, u := range r.Unmapped {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s\n", screen.OneLine(from), u.Line, u.Column, screen.OneLine(u.Place), screen.OneLine(u.Reason))
	}
	server := r.Server
	if server == "" {
		server = "not said; use --base"
	}
	fmt.Fprintf(&b, "%s, OpenAPI %s, %s; server: %s", screen.OneLine(r.Title), r.Revision, screen.Quantity(len(r.Operations), "operation"), screen.OneLine(server))
	if len(r.Schemes) > 0 {
		fmt.Fprintf(&b, "; credentials: %s", screen.OneLine(strings.Join(r.Schemes, ", ")))
	}
	return b.String()
}

// Err is the error of a document with parts that are not mapped.
func (r *Report) Err() error {
	if len(r.Unmapped) == 1 {
		return errors.New("one part of the document is not mapped")
	}
	return fmt.Errorf("%d parts of the document are not mapped", len(r.Unmapped))
}
