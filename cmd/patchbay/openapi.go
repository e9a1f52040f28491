package main

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/apidoc"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

var openapiVerb = verb{
	name: "openapi", summary: "Serve an HTTP API by its OpenAPI document.", usage: "FILE|URL [--http ADDR] [FLAGS OF serve openapi]",
	examples: []string{"patchbay openapi petstore.yaml --http 127.0.0.1:7420", "patchbay tools -- patchbay openapi petstore.yaml", "patchbay openapi check petstore.yaml"},
	minor:    true,
	server:   wordsBehindDashes | foreignFlags,
	details:  "The same as patchbay serve openapi, whose help lists the flags; docs/openapi.md\nsays what becomes of a document.",
	command:  func() command { return new(openapiCmd) },
	verbs:    []*verb{&openapiCheckVerb},
}

type openapiCmd struct{ serveCmd }

func (*openapiCmd) candidates(*app, string) []complete.Candidate { return nil }

func (c *openapiCmd) Run(a *app) error {
	if c.Name == "" {
		return usagef("name a document: a file or a URL").Hint("patchbay openapi petstore.yaml")
	}
	c.Name, c.Args = "openapi", append([]string{c.Name}, c.Args...)
	return c.serveCmd.Run(a)
}

var openapiCheckVerb = verb{
	name: "check", summary: "Show what becomes of an OpenAPI document, and what cannot be mapped.", usage: "FILE|URL",
	examples: []string{"patchbay openapi check petstore.yaml"},
	details:  "Exit code 6: a part of the document is not mapped; 1: it cannot be read.",
	command:  func() command { return new(openapiCheckCmd) },
}

type openapiCheckCmd struct{ apidoc.Document }

func (c *openapiCheckCmd) Run(a *app) error {
	r, err := c.Read(a.ctx, a.ServerCA)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.printJSON(r)
	} else {
		a.printGrid(r.Grid())
		a.print(r.Summary(c.From))
	}
	if err == nil && len(r.Unmapped) > 0 {
		err = &fault{Code: exitRefused, Err: r.Err()}
	}
	return err
}
