package block

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

func TestFileName(t *testing.T) {
	tests := []struct{ name, mime, want string }{
		{"test_image_content", "image/png", "test_image_content.png"},
		{"photo.jpeg", "image/jpeg", "photo.jpg"},
		{"logo.PNG", "image/png; charset=x", "logo.png"},
		{"../../etc/passwd", "", "etc-passwd.bin"},
		{`C:\autoexec.bat`, "image/png", "C--autoexec.bat.png"},
		{".bashrc", "text/plain", "bashrc.txt"},
		{"setup.exe", "application/x-msdownload", "setup.exe.bin"},
		{"NUL", "image/png", "_NUL.png"},
		{"com1.x", "image/png", "_com1.x.png"},
		{"\x1b[31m\u202ered", "image/png", "31m-red.png"},
		{"写真", "image/webp", "写真.webp"},
		{"", "audio/wav", "result.wav"},
		{"...", "", "result.bin"},
	}
	for _, tt := range tests {
		stem, ext := FileName(tt.name, tt.mime)
		if got := stem + ext; got != tt.want {
			t.Errorf("FileName(%q, %q) = %q, want %q", tt.name, tt.mime, got, tt.want)
		}
	}
}

// FuzzFileName wants names that stay in their folder and are valid on every system.
func FuzzFileName(f *testing.F) {
	f.Add("../x", "image/png")
	f.Add("con\x00", "")
	f.Add(strings.Repeat("日", 500), "a/b")
	f.Fuzz(func(t *testing.T, name, mime string) {
		stem, ext := FileName(name, mime)
		got := stem + ext
		if got != filepath.Base(got) || !filepath.IsLocal(got) || strings.ContainsAny(got, `/\:*?"<>|`) || got[0] == '.' || got[0] == '-' ||
			len(got) > 255 || !utf8.ValidString(got) || screen.Visible(got) != got {
			t.Errorf("FileName(%q, %q) = %q", name, mime, got)
		}
	})
}

// TestWriteNew checks that WriteNew overwrites nothing and follows no link.
func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(outside, filepath.Join(dir, "a-2.png")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, want := range []string{"a.png", "a-3.png", "a-4.png"} {
		got, err := WriteNew(dir, "a", ".png", []byte(want))
		if err != nil || filepath.Base(got) != want {
			t.Errorf("WriteNew = %q, %v, want %q", got, err, want)
		}
		if data, _ := os.ReadFile(got); string(data) != want {
			t.Errorf("%s has %q", got, data)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("the link was followed")
	}
}
