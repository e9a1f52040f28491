package scaffold

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A project has a go.mod, the files of its template with its own name, and a .gitignore.
func TestWrite(t *testing.T) {
	for _, kind := range []string{"server", "client"} {
		for module, name := range map[string]string{"weather": "weather", "example.com/you/my-Weather.app": "my-Weather.app", "github.com/you/weather/v2": "weather"} {
			t.Chdir(t.TempDir())
			p := &Project{Kind: kind, Module: module, Version: "v0.1.0"}
			names, err := p.Write()
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{".gitignore", "README.md", "go.mod", "main.go", "main_test.go"}; !slices.Equal(names, want) {
				t.Errorf("%s %s: files %q, want %q", kind, module, names, want)
			}
			for _, file := range names {
				text, err := os.ReadFile(filepath.Join(name, file))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), placeholder) {
					t.Errorf("%s %s: %s has the placeholder", kind, module, file)
				}
				if file == "main.go" && !strings.Contains(string(text), `Name: "`+name+`"`) {
					t.Errorf("%s %s: %s does not have the name", kind, module, file)
				}
			}
			mod, _ := os.ReadFile(filepath.Join(name, "go.mod"))
			if want := "module " + module + "\n\ngo 1.26.0\n\nrequire github.com/patchbay-dev/patchbay v0.1.0\n"; string(mod) != want {
				t.Errorf("go.mod is %q, want %q", mod, want)
			}
		}
	}
}

// The URI of the resource is valid for each name.
func TestURI(t *testing.T) {
	uri := regexp.MustCompile(`URI: "([^"]*)"`)
	for name, want := range map[string]string{
		"weather": "weather://about", "my_server": "my-server://about", "a~": "a-://about", "a_": "a-://about",
		"x_linux": "x-linux://about", "a.b_c": "a.b-c://about", "My-Server2": "my-server2://about",
	} {
		files, err := (&Project{Kind: "server", Module: "example.com/" + name}).files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if text := string(f.data); strings.Contains(text, "://about") && !strings.Contains(text, want) {
				t.Errorf("%s: %s does not have %s", name, f.name, want)
			}
			if m := uri.FindSubmatch(f.data); m != nil { // AddResource panics if it is not a URI
				mcp.AddResource(&mcp.Server{}, mcp.Resource{URI: string(m[1]), Name: name}, func(context.Context) (string, error) { return "", nil })
			}
		}
	}
}

// The go command reads the go.mod for each folder with the source.
func TestSource(t *testing.T) {
	wine.Skip(t, "it runs no go command")
	for _, name := range []string{"plain", "with space", "Käthe's Bücher & mehr", "a,b", "(b)", "[c]", "{d}", `e"f`, "g`h", "k*", "l\nm", "n%o", "p@q", "=>"} {
		source := filepath.Join(t.TempDir(), name)
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "\"\\*\n>") {
			continue // not a name of a folder there
		}
		if err := errors.Join(os.Mkdir(source, 0o755), os.WriteFile(filepath.Join(source, "go.mod"), []byte("module "+patchbay+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "weather")
		if _, err := (&Project{Kind: "server", Module: "weather", Dir: dir, Source: source}).Write(); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var mod struct {
			Replace []struct{ New struct{ Path string } }
		}
		if err != nil || json.Unmarshal(out, &mod) != nil || len(mod.Replace) != 1 || mod.Replace[0].New.Path != filepath.ToSlash(source) {
			t.Errorf("%q: go mod edit -json: %v\n%s", name, err, out)
		}
	}
}

// A program that was built from a folder knows it.
func TestNew(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(filepath.FromSlash(file)) {
		t.Skip("built elsewhere, or with -trimpath")
	}
	source, err := filepath.Abs("../../../..")
	t.Setenv("GOWORK", "off")
	if p, warning := New("server", "weather", "", ""); err != nil || p.Source != source || !strings.Contains(warning, source) || strings.Contains(p.Setup(), "replace") {
		t.Errorf("New = %+v, %s, want the source %s, %v", p, warning, source, err)
	}
	if p, warning := New("server", "weather", "", "mine"); p.Source != "mine" || warning != "" {
		t.Errorf("New with a source = %+v, %s", p, warning)
	}
	if got := (&Project{}).Setup(); !strings.HasPrefix(got, "go mod edit -replace "+patchbay+"=FOLDER && go mod tidy") {
		t.Errorf("without a source: %s", got)
	}
}

// In a workspace the go command refuses a module that go.work does not name.
func TestSetupInWorkspace(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "")
	p := &Project{Kind: "server", Module: "weather", Version: "v0.1.0"}
	if got := p.Setup(); got != "go mod tidy && go test ./..." {
		t.Errorf("without a workspace: %s", got)
	}
	if err := os.WriteFile("go.work", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "go work use . && go mod tidy && go test ./..."
	if got := p.Setup(); got != want {
		t.Errorf("in a workspace: %s", got)
	}
	for env, in := range map[string]bool{"off": false, filepath.Join("elsewhere", "go.work"): true} {
		t.Setenv("GOWORK", env)
		if got := p.Setup() == want; got != in {
			t.Errorf("GOWORK=%s: %s", env, p.Setup())
		}
	}
}

// Only a version that can be downloaded is required.
func TestRelease(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0": "v0.1.0", "v0.1.1-0.20261123070000-abcdefabcdef": "v0.1.1-0.20261123070000-abcdefabcdef",
		"v0.1.0+dirty": "", "(devel)": "", "": "",
	} {
		if got := release(&debug.BuildInfo{Main: debug.Module{Path: patchbay, Version: version}}); got != want {
			t.Errorf("release of %q = %q, want %q", version, got, want)
		}
	}
	if got := release(&debug.BuildInfo{Main: debug.Module{Path: "example.com/other", Version: "v1.0.0"}}) + release(nil); got != "" {
		t.Errorf("release of other programs = %q", got)
	}
}

// The go directive is that of Patchbay itself.
func TestGoDirective(t *testing.T) {
	mod, err := os.ReadFile("../../../../go.mod")
	if err != nil || !strings.Contains(string(mod), "\ngo 1.26.0\n") {
		t.Errorf("the go.mod of Patchbay has another go directive than that of a new project; %v", err)
	}
}

// A path that Go or a file system refuses is an error that names it.
func TestCheckModule(t *testing.T) {
	for module, want := range map[string]string{
		"":                        "is empty",
		"/weather":                "is empty",
		"weather/":                "is empty",
		"a//b":                    "is empty",
		"my weather":              "other characters",
		"weather!":                "other characters",
		`..\weather`:              "other characters",
		"../weather":              "other characters",
		".":                       "other characters",
		"./weather":               "other characters",
		".hidden":                 "begins with a dot",
		"wetter.":                 "ends with a dot",
		"wärme":                   "other characters",
		"-weather":                "hyphen",
		"con":                     "reserved name on Windows",
		"NUL":                     "reserved name on Windows",
		"aux.go":                  "reserved name on Windows",
		"github.com/com1/x":       "reserved name on Windows",
		"github.com/you/lpt9":     "reserved name on Windows",
		"fmt":                     "standard library",
		"net/weather":             "standard library",
		"std":                     "standard library",
		"7up":                     "does not begin with a letter",
		"example.com/_x":          "does not begin with a letter",
		"go.mod":                  `"go.mod" would replace a file of the project`,
		"example.com/Main.go":     "would replace a file",
		"example.com/go.sum/v2":   "would replace a file",
		patchbay:                  "it belongs to Patchbay",
		patchbay + "/v2":          "it belongs to Patchbay",
		patchbay + "/mcp":         "it belongs to Patchbay",
		"tool":                    "another meaning",
		"x~1":                     "short name of Windows",
		"a/b~12.x/c":              "short name of Windows",
		strings.Repeat("abc", 99): "longer than 200 bytes",
	} {
		if err := CheckModule(module); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write a name such as weather") {
			t.Errorf("CheckModule(%q) = %v, want an error with %q", module, err, want)
		}
	}
	for _, module := range []string{"weather", "Weather2", "my-weather", "a.b_c~d", "example.com/x", "context7", "console", "test", patchbay + "2", "work/x", "a~b1"} {
		if err := CheckModule(module); err != nil {
			t.Errorf("CheckModule(%q) = %v", module, err)
		}
	}
}

// A folder that cannot take the project is an error that names it, and nothing changes.
func TestFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, err := range []error{
		os.MkdirAll("full/sub", 0o755), os.WriteFile("full/notes.txt", []byte("mine"), 0o644), os.WriteFile("plain", nil, 0o644),
		os.Mkdir("empty", 0o755), os.Mkdir("locked", 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ dir, want string }{
		{"full", "the folder full is not empty: it has notes.txt; choose another name or folder"},
		{"plain", "plain is a file; choose another name or folder"},
		{"missing/weather", "the folder missing, in which to make weather, does not exist; make it first"},
		{"plain/weather", "weather"},
		{"full/", "the folder full is not empty"},
		{"nul", `"nul" is a reserved name on Windows; choose another folder`},
		{"Con", `"Con" is a reserved name on Windows`},
		{"locked/weather", "cannot write to the folder " + filepath.Join("locked", "weather")},
		{"locked", "cannot write to the folder locked"},
	} {
		if strings.HasPrefix(tt.dir, "locked") && (os.Getuid() == 0 || runtime.GOOS == "windows") {
			continue // this user may write there
		}
		p := &Project{Kind: "server", Module: "weather", Dir: filepath.FromSlash(tt.dir), Version: "v0.1.0"}
		if names, err := p.Write(); err == nil || names != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v, want an error with %q", tt.dir, names, err, tt.want)
		}
	}
	if _, err := (&Project{Kind: "server", Module: "weather", Dir: "empty"}).Write(); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.MkdirAll("fresh/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Project{Kind: "server", Module: "weather", Dir: "fresh"}).Write(); err != nil {
		t.Errorf("a folder of git: %v", err)
	}
	if err := os.RemoveAll("fresh"); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Project{Kind: "proxy", Module: "weather"}).Write(); err == nil || !strings.Contains(err.Error(), `"proxy" is not a kind of project`) {
		t.Errorf("an unknown kind: %v", err)
	}
	if _, err := (&Project{Kind: "server", Module: "weather", Source: "full"}).Write(); err == nil || !strings.Contains(err.Error(), "full does not hold the source of Patchbay") {
		t.Errorf("a wrong source: %v", err)
	}
	var left []string
	filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if !strings.HasPrefix(path, "empty"+string(filepath.Separator)) {
			left = append(left, filepath.ToSlash(path))
		}
		return err
	})
	if err := errors.Join(os.Mkdir(`a\b`, 0o755), os.WriteFile(`a\b/go.mod`, []byte("module "+patchbay+"\n"), 0o644)); err == nil && runtime.GOOS != "windows" {
		if _, err := (&Project{Kind: "server", Module: "weather", Source: `a\b`}).Write(); err == nil || !strings.Contains(err.Error(), "a path with a backslash") {
			t.Errorf("a source with a backslash: %v", err)
		}
		os.RemoveAll(`a\b`)
	}
	for dir, want := range map[string]string{"-x": "./-x", "-": "./-", "a/-x": "a/-x", "": "weather"} {
		if got := (&Project{Module: "weather", Dir: dir}).Folder(); filepath.ToSlash(got) != want {
			t.Errorf("the folder of %q is %s, want %s", dir, got, want)
		}
	}
	if want := []string{".", "empty", "full", "full/notes.txt", "full/sub", "locked", "plain"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

// A file that cannot be written takes those before it along.
func TestNothingHalfWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"new", "empty"} {
		if names, err := write(dir, []file{{"one", []byte("1")}, {"two", nil}, {filepath.Join("no", "such"), nil}}); err == nil || names != nil {
			t.Errorf("%s: %q, %v", dir, names, err)
		}
	}
	if entries, err := os.ReadDir("empty"); err != nil || len(entries) > 0 {
		t.Errorf("empty has %v, %v", entries, err)
	}
	if _, err := os.Stat("new"); !os.IsNotExist(err) {
		t.Errorf("new is left behind: %v", err)
	}
}

// A new project builds, and passes its own tests, with modules from the cache alone.
func TestProjectsWork(t *testing.T) {
	wine.Skip(t, "it runs no go command")
	if testing.Short() {
		t.Skip("it builds programs")
	}
	source, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[string]string{"server": "my_server.v2~x", "client": "asker"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "with space, [and] Käthe's")
			if _, err := (&Project{Kind: kind, Module: "example.com/you/" + name, Dir: dir, Source: source}).Write(); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
				cmd := exec.Command("go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("go %s: %v\n%s", args[0], err, out)
				}
			}
		})
	}
}
