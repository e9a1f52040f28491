package main

import (
	"errors"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/httpapi"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/reference"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/launch"
)

var docsVerb = verb{
	name: "docs", summary: "Write what a server offers as Markdown or as an OpenAPI document.", usage: "[SERVER] [--format markdown|openapi]",
	examples: []string{"patchbay docs -s everything", "patchbay docs --format openapi -- npx -y @modelcontextprotocol/server-memory"},
	minor:    true,
	server:   oneServer | wordIsServer | programIsServer,
	details:  `The OpenAPI document, also with --json, has a POST for each tool.`,
	command:  func() command { return new(docsCmd) },
}

type docsCmd struct {
	Format string `name:"format" default:"markdown" placeholder:"FORMAT" help:"markdown or openapi."`
	Base   string `name:"base" default:"http://127.0.0.1:7420" placeholder:"URL" help:"The gateway, for openapi."`
}

func (c *docsCmd) Run(a *app) error {
	if c.Format != "markdown" && c.Format != "openapi" {
		return usagef("--format %q is neither markdown nor openapi", c.Format)
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	s := &reference.Server{Info: p.Server(), Command: a.other}
	err = errors.Join(offered(a, p, feature.Tools, &s.Tools), offered(a, p, feature.Resources, &s.Resources), offered(a, p, feature.Templates, &s.Templates), offered(a, p, feature.Prompts, &s.Prompts))
	if err != nil {
		return err
	}
	if c.Format == "markdown" && !a.JSON {
		a.out.WriteString(s.Markdown())
		return nil
	}
	doc := s.OpenAPI(c.Base, httpapi.At("s/"+entry.ShortName(*a.server, nil)), nil)
	a.out.Write(doc.Document())
	for _, lost := range doc.Lost {
		a.talk.Note("warning: %s", lost)
	}
	return nil
}

// offered decodes a list of a server; a server without such a list has an empty one.
func offered[T any](a *app, p *launch.Session, of feature.List, out *[]T) error {
	l, err := a.list(p, of)
	if f := (*fault)(nil); errors.As(err, &f) && f.Code == exitAnswer {
		return nil
	}
	if err == nil {
		rowsOf(a, l, func(v *T) (r row) { *out = append(*out, *v); return r })
	}
	return err
}
