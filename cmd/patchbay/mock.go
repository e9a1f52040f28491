package main

import (
	"github.com/patchbay-dev/patchbay/internal/replay"
)

var mockVerb = verb{
	name: "mock", summary: "Serve a recording in place of its server.", usage: "TRACE [--http ADDR]",
	examples: []string{"patchbay mock t.jsonl", "patchbay mock t.jsonl --http 127.0.0.1:7420", "patchbay tools -- patchbay mock t.jsonl"},
	minor:    true,
	details: `Answers requests from the recording, by method and params, else by method and
name, in recorded order. Replays recorded questions and notifications. Clients
may use any revision. Without --http, serves stdio.`,
	command: func() command { return new(mockCmd) },
}

// mockCmd serves a recording in place of the recorded server.
type mockCmd struct {
	File string `arg:"" name:"trace" help:"A recording of --trace or folder of --record."`
	HTTP string `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address; default: stdio."`
	protection
	Conn string `placeholder:"PATTERN" help:"Only connections with such names; * matches any text."`
}

func (c *mockCmd) Run(a *app) error {
	if c.File == "-" {
		return usagef("mock needs a file: standard input is for the client")
	}
	rec, err := a.readRecording(c.File, c.Conn)
	if err != nil {
		return err
	}
	srv := replay.NewMock(rec).Server()
	srv.Logger = a.logger()
	return a.serve(srv, "", nil, c.HTTP, c.protection, governed{}, measured{})
}
