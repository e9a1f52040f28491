package inspector

import (
	"path"
	"testing"
)

// The page stays small: all its scripts and styles together, as they are and as browsers get them.
func TestSizeOfAssets(t *testing.T) {
	files, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	plain, compressed := map[string]int{}, map[string]int{}
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		plain[path.Ext(f.Name())] += len(text)
		compressed[path.Ext(f.Name())] += len(pack(f.Name(), text))
	}
	for _, tt := range []struct {
		what      string
		got, most int
	}{
		{"scripts", plain[".js"], 120_000},
		{"compressed scripts", compressed[".js"], 43_500},
		{"styles", plain[".css"], 16_384},
	} {
		if tt.got == 0 || tt.got > tt.most {
			t.Errorf("the %s have %d bytes, want at most %d", tt.what, tt.got, tt.most)
		}
	}
}
