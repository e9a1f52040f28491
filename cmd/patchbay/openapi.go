package main

import "github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"

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
