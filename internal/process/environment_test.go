package process

import "testing"

func TestPasses(t *testing.T) {
	tests := []struct {
		name, value, goos string
		want              bool
	}{
		{"PATH", "/usr/bin", "linux", true},
		{"LC_ALL", "C", "darwin", true},
		{"Path", `C:\Windows`, "windows", true},
		{"SystemRoot", `C:\Windows`, "windows", true},
		{"ProgramFiles(x86)", `C:\`, "windows", true},
		{"=C:", `C:\`, "windows", false},
		{"path", "/usr/bin", "linux", false},
		{"PATHX", "/usr/bin", "linux", false},
		{"HOME", "() { :; }; echo", "linux", false},
		{"GITHUB_TOKEN", "x", "linux", false},
		{"AWS_SECRET_ACCESS_KEY", "x", "windows", false},
		{"HTTPS_PROXY", "http://user:password@proxy", "linux", false},
		{"SSH_AUTH_SOCK", "/tmp/x", "linux", false},
		{"LD_PRELOAD", "/tmp/x.so", "linux", false},
		{"NODE_OPTIONS", "--require x", "linux", false},
		{"PATCHBAY_INPUT_TOKEN", "x", "linux", false},
	}
	for _, tt := range tests {
		if got := Passes(tt.name, tt.value, tt.goos); got != tt.want {
			t.Errorf("Passes(%q, %q, %q) = %v", tt.name, tt.value, tt.goos, got)
		}
	}
}
