package project

import (
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// The folders that count as projects, on three systems (trap 2). A folder without a marker is not a
// project, whatever its name, and some folders never are.
func TestProject(t *testing.T) {
	const linux, mac, windows = "linux", "darwin", "windows"
	homes := map[string]string{linux: "/home/ada", mac: "/Users/ada", windows: `C:\Users\Ada`}
	tests := []struct {
		goos, dir, marker string // marker is a file that exists, with slashes
		want              bool
	}{
		// A marker in the folder, or above it.
		{linux, "/home/ada/src/shop", "/home/ada/src/shop/.git", true},
		{linux, "/home/ada/src/shop/cmd/x", "/home/ada/src/shop/go.mod", true},
		{linux, "/srv/app", "/srv/app/package.json", true},
		{linux, "/app", "/app/.git", true},
		{linux, "/srv/site", "/srv/site/.git", true},
		{linux, "/tmp/try", "/tmp/try/Makefile", true},
		{linux, "/var/www/site", "/var/www/site/composer.json", true},
		{mac, "/Users/ada/Shop", "/Users/ada/Shop/Package.swift", true},
		{mac, "/private/var/folders/ab/cd/T/try", "/private/var/folders/ab/cd/T/try/go.mod", true},
		{windows, `C:\Users\Ada\src\shop`, "C:/Users/Ada/src/shop/.git", true},
		{windows, `c:\users\ada\src\shop\x`, "c:/users/ada/src/shop/Cargo.toml", true},
		{windows, `D:\shop`, "D:/shop/.git", true},
		{windows, `\\server\share\shop`, "//server/share/shop/.git", true},
		{linux, "/mnt/c/Users/ada/shop", "/mnt/c/Users/ada/shop/.git", true},

		// No marker.
		{linux, "/home/ada/empty", "", false},
		{mac, "/Users/ada/Documents", "", false},
		{windows, `C:\Users\Ada\Documents`, "", false},
		{linux, "/tmp/try", "/tmp/package.json", false}, // /tmp belongs to nobody
		{linux, "/home/ada/notes", "/home/ada/.git", false},
		{windows, `C:\Users\Ada\notes`, "C:/Users/Ada/.git", false},

		// Not a project, whatever is in it.
		{linux, "/", "/.git", false},
		{mac, "/", "/.git", false},
		{windows, `C:\`, "C:/.git", false},
		{windows, `C:`, "C:/.git", false},
		{windows, `\\server\share`, "//server/share/.git", false},
		{windows, `\\server\share\`, "//server/share/.git", false},
		{linux, "/home/ada", "/home/ada/.git", false},
		{linux, "/home/ada/", "/home/ada/.git", false},
		{linux, "/home", "/home/.git", false},
		{linux, "/home/bob", "/home/bob/.git", false},
		{linux, "/root", "/root/.git", false},
		{mac, "/Users/ada", "/Users/ada/.git", false},
		{mac, "/users/ADA", "/users/ADA/.git", false},
		{mac, "/Users", "/Users/package.json", false},
		{windows, `C:\Users\Ada`, "C:/Users/Ada/.git", false},
		{windows, `c:\USERS\ada`, "c:/USERS/ada/.git", false},
		{windows, `C:\Users`, "C:/Users/.git", false},
		{windows, `C:\Users\Public`, "C:/Users/Public/.git", false},
		{linux, "/etc", "/etc/.git", false}, // etckeeper
		{linux, "/etc/nginx", "/etc/.git", false},
		{linux, "/usr/src/linux", "/usr/src/linux/Makefile", false},
		{linux, "/var/lib/app", "/var/lib/app/.git", false},
		{linux, "/var", "/var/.git", false},
		{linux, "/proc/1/cwd", "/proc/1/cwd/.git", false},
		{linux, "/tmp", "/tmp/package.json", false},
		{linux, "/mnt/disk", "/mnt/disk/.git", false},
		{linux, "/media/ada/STICK", "/media/ada/STICK/.git", false},
		{linux, "/mnt/c", "/mnt/c/.git", false},
		{linux, "/mnt/c/Windows/System32", "/mnt/c/Windows/System32/.git", false},
		{linux, "/mnt/c/Users/ada", "/mnt/c/Users/ada/.git", false},
		{mac, "/Volumes/Disk", "/Volumes/Disk/.git", false},
		{mac, "/System/Library", "/System/Library/.git", false},
		{mac, "/Applications/X.app", "/Applications/X.app/package.json", false},
		{mac, "/private/etc", "/private/etc/.git", false},
		{windows, `C:\Windows\System32`, "C:/Windows/System32/.git", false},
		{windows, `C:\WINDOWS`, "C:/WINDOWS/.git", false},
		{windows, `C:\Program Files\Git`, "C:/Program Files/Git/.git", false},
		{windows, `C:\ProgramData`, "C:/ProgramData/.git", false},
		{linux, "/home/ada/.config/nvim", "/home/ada/.config/nvim/.git", false},
		{linux, "/home/ada/.ssh", "/home/ada/.ssh/.git", false},
		{linux, "/home/ada/src/shop/.git", "/home/ada/src/shop/.git", false},
		{mac, "/Users/ada/Library/Mail", "/Users/ada/Library/Mail/.git", false},
		{windows, `C:\Users\Ada\AppData\Local\x`, "C:/Users/Ada/AppData/Local/x/.git", false},
		{windows, `\\?\C:\Windows`, "C:/Windows/.git", false},
	}
	for _, tt := range tests {
		f := folders{tt.goos, homes[tt.goos], func(path string) bool { return tt.marker != "" && path == tt.marker }}
		if why := f.project(tt.dir); (why == "") != tt.want {
			t.Errorf("%s: project(%s) with %s says %q, want a project: %v", tt.goos, tt.dir, tt.marker, why, tt.want)
		}
	}
}

// A folder that looks like a home is not a project, wherever it is; neither is a folder in it
// because of the home's contents.
func TestForeignHome(t *testing.T) {
	f := folders{"linux", "/home/ada", func(path string) bool {
		return slices.Contains([]string{"/export/bob/.bash_history", "/export/bob/Makefile", "/export/bob/src/go.mod"}, path)
	}}
	for dir, want := range map[string]bool{"/export/bob": false, "/export/bob/notes": false, "/export/bob/src": true, "/export/bob/src/deep": true} {
		if why := f.project(dir); (why == "") != want {
			t.Errorf("project(%s) says %q, want a project: %v", dir, why, want)
		}
	}
}

// Without a home folder in the environment, as in a service or a container, the working folder is not taken for it.
func TestHomeOfAccount(t *testing.T) {
	dir := ownfile.RealPath(t.TempDir())
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	t.Chdir(dir)
	if got := home(); got == dir {
		t.Errorf("home() = %q, the working folder", got)
	}
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	if got := home(); got != dir {
		t.Errorf("home() = %q, want %q of the environment", got, dir)
	}
}
