package main

import (
	"runtime"
	"runtime/debug"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Version is the version of the program.
const Version = "0.1.0-dev"

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	v := struct {
		Version   string         `json:"version"`
		Commit    string         `json:"commit,omitempty"`
		Time      string         `json:"time,omitempty"`
		Modified  bool           `json:"modified,omitzero"` // built from a tree with changes
		Go        string         `json:"go"`
		System    string         `json:"system"`
		Revisions []mcp.Revision `json:"revisions"`
	}{Version: Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Revisions: mcp.Revisions()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Time = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if a.JSON {
		raw, err := jsonx.Marshal(v)
		if err != nil {
			return err
		}
		a.print(string(raw))
		return nil
	}
	text := "patchbay " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			text += ", modified"
		}
		text += ")"
	}
	a.print(text + ", " + v.Go + ", " + v.System)
	a.print("revisions " + join(v.Revisions, ", "))
	return nil
}
