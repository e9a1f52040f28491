package main

import (
	"runtime"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/origin"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Version is the version of the program.
var Version = origin.Own().Version

var versionVerb = verb{
	name: "version", summary: "Show the version.",
	examples: []string{"patchbay version --json", "patchbay version --licences"},
	minor:    true,
	command:  func() command { return new(versionCmd) },
}

type versionCmd struct {
	Licences bool `help:"Print the licences of the work of others in the program."`
}

func (c *versionCmd) Run(a *app) error {
	if c.Licences {
		return origin.WriteLicences(a.out)
	}
	v := struct {
		origin.Build
		Go        string         `json:"go"`
		System    string         `json:"system"`
		Revisions []mcp.Revision `json:"revisions"`
	}{origin.Own(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, mcp.Revisions()}
	if a.JSON {
		return a.printJSON(v)
	}
	a.print("patchbay " + v.String() + ", " + v.Go + ", " + v.System)
	a.print("revisions " + join(v.Revisions, ", "))
	return nil
}
