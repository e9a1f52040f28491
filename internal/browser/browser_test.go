package browser

import (
	"slices"
	"strings"
	"testing"
)

func TestOpener(t *testing.T) {
	for _, tt := range []struct {
		system string
		env    map[string]string
		has    string
		want   string
	}{
		{"windows", nil, "", "rundll32 url.dll,FileProtocolHandler"},
		{"darwin", nil, "", "open"},
		{"linux", nil, "xdg-open", ""},
		{"linux", map[string]string{"DISPLAY": ":0"}, "", ""},
		{"linux", map[string]string{"DISPLAY": ":0"}, "xdg-open", "xdg-open"},
		{"freebsd", map[string]string{"WAYLAND_DISPLAY": "w"}, "xdg-open", "xdg-open"},
		{"linux", map[string]string{"WSL_DISTRO_NAME": "x"}, "wslview", "wslview"},
	} {
		got := opener(tt.system, func(n string) string { return tt.env[n] }, func(n string) bool { return n == tt.has })
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("opener(%q, %v) = %q, want %q", tt.system, tt.env, got, tt.want)
		}
	}
}
