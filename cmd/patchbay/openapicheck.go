package main

import "github.com/patchbay-dev/patchbay/cmd/patchbay/internal/apidoc"

var openapiCheckVerb = verb{
	name: "check", summary: "Show what becomes of an OpenAPI document, and what cannot be mapped.", usage: "FILE|URL",
	examples: []string{"patchbay openapi check petstore.yaml"},
	details:  "Exit code 6: a part of the document is not mapped; 1: it cannot be read.",
	command:  func() command { return new(openapiCheckCmd) },
}

type openapiCheckCmd struct{ apidoc.Document }

func (c *openapiCheckCmd) Run(a *app) error {
	r, err := c.Read(a.ctx)
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
