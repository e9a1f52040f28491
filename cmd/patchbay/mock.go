package main

import (
	"github.com/patchbay-dev/patchbay/internal/replay"
)

// mockCmd serves a recording in place of the server that was recorded.
type mockCmd struct {
	File string `arg:"" name:"trace" help:"A recording of --trace."`
	HTTP string `name:"http" placeholder:"ADDR" help:"Serve Streamable HTTP on this address; default: stdio."`
	protection
	Conn string `placeholder:"PATTERN" help:"Only connections of such names, as *."`
}

func (c *mockCmd) Run(a *app) error {
	if a.Server != "" || a.dashed {
		return usagef("mock serves the recording alone; no other server is named").hint("patchbay mock " + shell([]string{c.File}))
	}
	if c.File == "-" {
		return usagef("mock reads a file, as standard input is for the client")
	}
	rec, err := a.readRecording(c.File, c.Conn)
	if err != nil {
		return err
	}
	srv := replay.NewMock(rec).Server()
	srv.Logger = a.logger()
	return a.serve(srv, nil, c.HTTP, c.protection)
}
