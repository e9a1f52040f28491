package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/mcp"
)

// nextVersion is the next release.
const nextVersion = "0.1.0"

// Version is the version of the program: the module's, as go install …/cmd/patchbay@v0.1.0 records
// it, else the next release's with "-dev".
var Version = func() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}()

// pseudo matches the end of a pseudo-version, which names a commit and not a release.
var pseudo = pattern.Lazy(`[-.]\d{14}-[0-9a-f]{12}`)

// versionOf returns the version of a build; info is nil if it is unknown.
func versionOf(info *debug.BuildInfo) string {
	if info == nil || !strings.HasPrefix(info.Main.Version, "v") || pseudo().MatchString(info.Main.Version) {
		return nextVersion + "-dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

var versionVerb = verb{
	name: "version", summary: "Show the version.",
	examples: []string{"patchbay version --json"},
	minor:    true,
	command:  func() command { return new(versionCmd) },
}

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	v := struct {
		Version   string         `json:"version"`
		Commit    string         `json:"commit,omitempty"`
		Time      string         `json:"time,omitempty"`
		Modified  bool           `json:"modified,omitzero"` // built from a modified tree
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
		return a.printJSON(v)
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
