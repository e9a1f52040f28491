package inspector

import (
	"io/fs"
	"path"
	"regexp"
	"testing"
)

// imported matches what a script or the page loads at once; import() is loaded later.
var imported = regexp.MustCompile(`(?:src="/assets/|href="/assets/|(?:from|import)"\./)([\w.-]+)"`)

// The page stays small: what it loads at its start, and with the screens that load a script of their own when they are
// opened; as it is, and as browsers get it.
func TestSizeOfAssets(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	start := map[string]bool{}
	var load func(name string)
	load = func(name string) {
		if !start[name] {
			start[name] = true
			for _, m := range imported.FindAllSubmatch(read(name), -1) {
				load(string(m[1]))
			}
		}
	}
	load("index.html")
	files, err := fs.Glob(assets, "assets/*.[jc]s*")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, file := range files {
		name := path.Base(file)
		kind := path.Ext(name)
		if kind != ".js" && kind != ".css" {
			continue
		}
		sizes["all "+kind] += len(read(name))
		sizes["all "+kind+" compressed"] += len(read(name + ".br"))
		if start[name] {
			sizes["start "+kind] += len(read(name))
			sizes["start "+kind+" compressed"] += len(read(name + ".br"))
		}
	}
	for what, most := range map[string]int{
		"start .js": 84_000, "start .js compressed": 28_000, "all .js": 141_000, "all .js compressed": 49_000,
		"start .css": 16_384, "all .css": 16_384, "start .css compressed": 4_096,
	} {
		if got := sizes[what]; got == 0 || got > most {
			t.Errorf("%s has %d bytes, want at most %d", what, got, most)
		}
	}
	if len(start) != 3 { // the page, its style, its script
		t.Errorf("the page loads %v", start)
	}
	// A screen is one file more: what several screens need is in the script of the page.
	for _, file := range files {
		name := path.Base(file)
		if path.Ext(name) != ".js" {
			continue
		}
		for _, m := range imported.FindAllSubmatch(read(name), -1) {
			if other := string(m[1]); !start[other] {
				t.Errorf("%s loads %s too", name, other)
			}
		}
	}
}
