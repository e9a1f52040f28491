package files

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Paths and file: URIs resolve inside a root or are refused (RES-26-018).
func TestLocate(t *testing.T) {
	unix, windows := dialect{}, dialect{windows: true}
	one := []folder{{name: "src", spellings: []string{"/home/ada/src", "/data/src"}}}
	two := []folder{{name: "a", spellings: []string{"/x/a"}}, {name: "b", spellings: []string{"/x/a/b", "/y"}}}
	all := []folder{{name: "root", spellings: []string{"/"}}}
	win := []folder{{name: "Src", spellings: []string{"C:/Users/Ada/Src"}}, {name: "share", spellings: []string{"//srv/share"}}, {name: "root", spellings: []string{"D:/"}}}
	tests := []struct {
		d       dialect
		folders []folder
		path    string
		want    string // index and what is there, empty: an error
	}{
		{unix, one, "", "0 ."},
		{unix, one, "a/b", "0 a/b"},
		{unix, one, "./a//b/", "0 a/b"},
		{unix, one, "a/../b", "0 b"},
		{unix, one, "..", ""},
		{unix, one, "a/../../b", ""},
		{unix, one, "...", "0 ..."},
		{unix, one, "..a", "0 ..a"},
		{unix, one, "/home/ada/src", "0 ."},
		{unix, one, "/home/ada/src/x", "0 x"},
		{unix, one, "//home//ada/./src/x/", "0 x"},
		{unix, one, "/data/src/x", "0 x"},
		{unix, one, "/home/ada/src2", ""},
		{unix, one, "/home/ada/SRC/x", ""},
		{unix, one, "/home/ada/src/../x", ""},
		{unix, one, "/", ""},
		{unix, one, "a\\..\\b", "0 a\\..\\b"},
		{unix, one, "C:/x", "0 C:/x"},
		{unix, one, "file:///home/ada/src/a%20b", "0 a b"},
		{unix, one, "FILE://localhost/home/ada/src/a", "0 a"},
		{unix, one, "file:///home/ada/src/%2e%2e/%2e%2e/etc/passwd", ""},
		{unix, one, "file:///home/ada/src/..%2f..%2fx", ""},
		{unix, one, "file://host/home/ada/src/a", ""},
		{unix, one, "file:///home/ada/src/a%00", ""},
		{unix, one, "file:///home/ada/src/a?x", ""},
		{unix, one, "file:///home/ada/src/a#x", ""},
		{unix, one, "file:///home/ada/src/%zz", ""},
		{unix, one, "file:a", "0 file:a"},
		{unix, one, "a\x00b", ""},
		{unix, one, "\xff", ""},
		{unix, one, "NUL", "0 NUL"},
		{unix, two, "", "-1 ."},
		{unix, two, "a", "0 ."},
		{unix, two, "a/x", "0 x"},
		{unix, two, "a/../b/x", "1 x"},
		{unix, two, "c/x", ""},
		{unix, two, "/x/a/x", "0 x"},
		{unix, two, "/x/a/b/x", "1 x"},
		{unix, two, "/y/x", "1 x"},
		{unix, all, "/", "0 ."},
		{unix, all, "/etc", "0 etc"},
		{unix, all, "/../etc", "0 etc"},
		{unix, nil, "x", ""},
		{windows, win, `Src\a\b`, "0 a/b"},
		{windows, win, `src/a`, "0 a"},
		{windows, win, `C:\Users\Ada\Src\x`, "0 x"},
		{windows, win, `c:/users/ADA/src/X`, "0 X"},
		{windows, win, `C:\Users\Ada\Src`, "0 ."},
		{windows, win, `C:\Users\Ada\Src\..\x`, ""},
		{windows, win, `C:Src`, ""},
		{windows, win, `\Users\Ada\Src\x`, ""},
		{windows, win, `\\srv\share\x`, "1 x"},
		{windows, win, `\\SRV\Share\..\x`, ""},
		{windows, win, `\\?\C:\Users\Ada\Src\x`, ""},
		{windows, win, `\\.\C:\Users`, ""},
		{windows, win, `file:///D:/`, "2 ."},
		{windows, win, `D:\x`, "2 x"},
		{windows, win, `d:/`, "2 ."},
		{windows, win, `D:\..\x`, ""},
		{windows, win, `src\..\..\x`, ""},
		{windows, win, `src/a:b`, ""},
		{windows, win, `src/a::$DATA`, ""},
		{windows, win, `src/NUL`, ""},
		{windows, win, `src/nul.txt`, ""},
		{windows, win, `src/com1 .txt`, ""},
		{windows, win, `src/COM¹`, ""},
		{windows, win, `src/lpt9/x`, ""},
		{windows, win, `src/CONOUT$`, ""},
		{windows, win, `src/com`, "0 com"},
		{windows, win, `src/com10`, "0 com10"},
		{windows, win, `src/null`, "0 null"},
		{windows, win, `src/a. `, ""},
		{windows, win, `src/a./b`, ""},
		{windows, win, `src/a?`, ""},
		{windows, win, "src/a\x1f", ""},
		{windows, win, `file:///C:/Users/Ada/Src/a%20b`, "0 a b"},
		{windows, win, `file:///c%3A/users/ada/src/a`, "0 a"},
		{windows, win, `file:///C:/Users/Ada/Src/..%5C..%5Cx`, ""},
		{windows, win, `file://srv/share/x`, "1 x"},
		{windows, win, `file:///D:/x`, "2 x"},
	}
	for _, tt := range tests {
		got := ""
		if l, err := tt.d.locate(tt.folders, tt.path); err == nil {
			got = strings.TrimSpace(string("-0123"[l.index+1])+" ") + " " + l.rel
			if l.index < 0 {
				got = "-1 " + l.rel
			}
		}
		if got != tt.want {
			t.Errorf("windows %t: locate %q = %q, want %q", tt.d.windows, tt.path, got, tt.want)
		}
	}
}

func TestURIsComeBack(t *testing.T) {
	for _, tt := range []struct {
		d         dialect
		path, uri string
	}{
		{dialect{}, "/", "file:///"},
		{dialect{}, "/a b/ü#?%|\\", "file:///a%20b/%C3%BC%23%3F%25%7C%5C"},
		{dialect{}, "/a%20b", "file:///a%2520b"},
		{dialect{windows: true}, "C:/a b", "file:///C:/a%20b"},
		{dialect{windows: true}, "//srv/share/a", "file://srv/share/a"},
	} {
		if got := tt.d.toURI(tt.path); got != tt.uri {
			t.Errorf("the URI of %q is %q, want %q", tt.path, got, tt.uri)
		}
		if got, err := tt.d.fromURI(tt.uri); got != tt.path || err != nil {
			t.Errorf("the path of %q is %q, %v; want %q", tt.uri, got, err, tt.path)
		}
	}
}

func TestNames(t *testing.T) {
	at := func(paths ...string) (list []folder) {
		for _, p := range paths {
			list = append(list, folder{spellings: []string{p}})
		}
		return list
	}
	tests := []struct {
		d       dialect
		folders []folder
		want    []string
	}{
		{dialect{}, at("/a", "/b"), []string{"a", "b"}},
		{dialect{}, at("/x/a", "/y/a", "/z/a"), []string{"a", "a-2", "a-3"}},
		{dialect{}, at("/x/a", "/y/a", "/a-2", "/z/a-2"), []string{"a", "a-3", "a-2", "a-2-2"}},
		{dialect{}, at("/", "/root"), []string{"root", "root-2"}},
		{dialect{}, at("/a", "/A"), []string{"a", "A"}},
		{dialect{windows: true}, at("C:/a", "D:/A", "E:/"), []string{"a", "A-2", "root"}},
	}
	for _, tt := range tests {
		tt.d.nameFolders(tt.folders)
		var got []string
		for _, f := range tt.folders {
			got = append(got, f.name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("the names are %q, want %q", got, tt.want)
		}
	}
}

// The meaning of any path is local to a folder, and the same when it is written as
// answers write it.
func FuzzLocate(f *testing.F) {
	for _, p := range []string{
		"", ".", "..", "a/b", "/x/a/b", "../../etc/passwd", "a/../../b", "b/..", `..\..\x`, `C:\x\a\y`, `c:x`, `d:\`, `\\srv\share\..\x`, `\\?\C:\x`,
		"file:///x/a/%2e%2e/y", "file:///C:/x/a/..%5cy", "file://srv/share/%2e%2e/x", "a/NUL", "a/b:c", "a/b. /c", "//x//a", "\x00", "\xff", "a\u00a0/..", "ſrc/x", "K/x",
	} {
		f.Add(p, false)
		f.Add(p, true)
	}
	f.Fuzz(func(t *testing.T, p string, windows bool) {
		d := dialect{windows}
		folders := []folder{{spellings: []string{"/x/a", "/real"}}, {spellings: []string{"/x/b"}}, {spellings: []string{"/k"}}}
		if windows {
			folders = []folder{{spellings: []string{"C:/x/a"}}, {spellings: []string{"//srv/share"}}, {spellings: []string{d.clean("D:/")}}, {spellings: []string{"K:/k"}}}
		}
		d.nameFolders(folders)
		for n := 1; n <= len(folders); n++ {
			l, err := d.locate(folders[:n], p)
			if err != nil {
				continue
			}
			if l.rel != path.Clean(l.rel) || path.IsAbs(l.rel) || l.rel == ".." || strings.HasPrefix(l.rel, "../") || strings.Contains(l.rel, "\x00") {
				t.Fatalf("locate %q = %q, which is not local", p, l.rel)
			}
			if windows && strings.ContainsAny(l.rel, `\:`) {
				t.Fatalf("locate %q = %q, which Windows reads otherwise", p, l.rel)
			}
			if l.index < 0 {
				continue
			}
			shown := l.rel
			if n > 1 {
				shown = path.Join(folders[l.index].name, l.rel)
			}
			if isFileURI(shown) {
				continue // a folder "file:" cannot be a name's beginning
			}
			if again, err := d.locate(folders[:n], shown); err != nil || again != l {
				t.Fatalf("locate %q = %v, and %q is %v, %v", p, l, shown, again, err)
			}
			abs := d.join(folders[l.index].spellings[0], l.rel)
			uri := d.toURI(abs)
			if again, err := d.locate(folders[:n], uri); err != nil || again != l {
				t.Fatalf("locate %q = %v, and %q is %v, %v", p, l, uri, again, err)
			}
		}
	})
}
