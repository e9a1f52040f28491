// Package origin knows what the program was built from: its version and commit, and the work of others in it.
package origin

import (
	"runtime/debug"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// next is the first release, before there is one.
const next = "0.1.0"

// Build is what Go recorded of a build.
type Build struct {
	Version  string `json:"version"`          // without v
	Commit   string `json:"commit,omitempty"` // all of it, or its first twelve digits
	Time     string `json:"time,omitempty"`   // of the commit
	Modified bool   `json:"modified,omitzero"`
}

// Own returns the build of this program.
func Own() Build {
	info, _ := debug.ReadBuildInfo()
	return of(info)
}

// pseudo matches a version that names a commit: the release that comes next, if there was one before, and the commit.
var pseudo = pattern.Lazy(`^v(\d+\.\d+\.\d+).*[-.]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// of returns the build that info tells of; nil if nothing is known. A build of a tagged commit, in whatever way, has the version of
// the tag, with "+dirty" if the tree had changes. All others have the version of the release to come, with "-dev".
func of(info *debug.BuildInfo) Build {
	b := Build{Version: next + "-dev"}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	version := info.Main.Version
	switch found := pseudo().FindStringSubmatch(version); {
	case found != nil:
		if found[1] != "0.0.0" {
			b.Version = found[1] + "-dev"
		}
		if b.Commit == "" { // go install …@main
			b.Commit = found[2]
		}
	case strings.HasPrefix(version, "v"):
		b.Version = version[1:]
	}
	return b
}

// String returns the version and the commit for people.
func (b Build) String() string {
	text := b.Version
	if b.Commit != "" {
		text += " (" + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text
}
