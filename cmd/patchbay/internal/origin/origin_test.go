package origin

import (
	"runtime/debug"
	"testing"
)

// The version of a tag is used, however the program was built; every other build is a development version of the release to come,
// with its commit if Go knows that (trap 45).
func TestOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	clone := []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-22T18:45:00Z"}, {Key: "vcs.modified", Value: "false"}}
	dirty := append(clone[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	tests := []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"go install of a tag", "v0.1.0", nil, "0.1.0"},
		{"go install of a tag before a release", "v1.4.2-rc.1", nil, "1.4.2-rc.1"},
		{"go install of a commit before the first tag", "v0.0.0-20261122184500-0123456789ab", nil, next + "-dev (0123456789ab)"},
		{"go install of a commit after a tag", "v0.2.1-0.20261122184500-0123456789ab", nil, "0.2.1-dev (0123456789ab)"},
		{"a clone at a tag", "v0.1.0", clone, "0.1.0 (0123456789ab)"},
		{"a clone at a tag, with changes", "v0.1.0+dirty", dirty, "0.1.0+dirty (0123456789ab, modified)"},
		{"a clone before the first tag", "v0.0.0-20261122184500-0123456789ab", clone, next + "-dev (0123456789ab)"},
		{"a clone after a tag, with changes", "v0.1.1-0.20261122184500-0123456789ab+dirty", dirty, "0.1.1-dev (0123456789ab, modified)"},
		{"a clone after a release candidate", "v0.2.0-rc.1.0.20261122184500-0123456789ab", clone, "0.2.0-dev (0123456789ab)"},
		{"without git", "(devel)", nil, next + "-dev"},
		{"a test", "", nil, next + "-dev"},
	}
	for _, tt := range tests {
		if got := of(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}).String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := of(nil).String(); got != next+"-dev" {
		t.Errorf("without information: %q", got)
	}
}
