package main

import (
	"runtime/debug"
	"testing"
)

// The version that go install records is used; every other build is a development version of the
// next one (trap 45).
func TestVersionOf(t *testing.T) {
	tests := []struct{ module, want string }{
		{"v0.1.0", "0.1.0"},
		{"v1.4.2-rc.1", "1.4.2-rc.1"},
		{"v0.1.0+dirty", "0.1.0+dirty"},
		{"(devel)", nextVersion + "-dev"},
		{"", nextVersion + "-dev"},
		{"v0.0.0-20261122184500-0123456789ab", nextVersion + "-dev"},
		{"v0.1.1-0.20261122184500-0123456789ab+dirty", nextVersion + "-dev"},
	}
	for _, tt := range tests {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: tt.module}}); got != tt.want {
			t.Errorf("the version of module %q is %q, want %q", tt.module, got, tt.want)
		}
	}
	if got := versionOf(nil); got != nextVersion+"-dev" {
		t.Errorf("the version without build information is %q", got)
	}
}
