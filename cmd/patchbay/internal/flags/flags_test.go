package flags

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

type shared struct {
	TraceMax int `default:"16" placeholder:"BYTES"`
}

type command struct {
	shared
	Servers []string      `name:"server" short:"s" sep:"none" placeholder:"SERVER"`
	Scopes  []string      `placeholder:"SCOPE"`
	JSON    bool          `short:"j"`
	Verbose bool          `short:"v"`
	Within  time.Duration `placeholder:"TIME"`
	OnAsk   string        `placeholder:"ANSWER"`
	Share   float64       `placeholder:"SHARE"`
	First   string        `flag:"-"`
	Tool    string        `arg:""`
	Count   int           `arg:"" optional:""`
	Words   []string      `arg:"" optional:"" name:"word"`
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		words string
		want  command
		err   string
	}{
		{"", command{}, ""},
		{"--server=a,b -sc -s=d", command{Servers: []string{"a,b", "c", "d"}}, ""},
		{"--server=", command{}, "--server needs a value: --server SERVER"},
		{"-s=", command{}, "--server needs a value: --server SERVER"},
		{"--on-ask=", command{}, "--on-ask needs a value: --on-ask ANSWER"},
		{"--json=", command{}, "--json needs a value: --json true"},
		{"--scopes=a,b --scopes=c", command{Scopes: []string{"a", "b", "c"}}, ""},
		{"--json -v", command{JSON: true, Verbose: true}, ""},
		{"-jv", command{JSON: true, Verbose: true}, ""},
		{"-vsname", command{Verbose: true, Servers: []string{"name"}}, ""},
		{"--json --json=no", command{}, ""},
		{"-j=false", command{}, ""},
		{"--json=maybe", command{}, `--json takes true or false, not "maybe"`},
		{"--within=90s", command{Within: 90 * time.Second}, ""},
		{"--within=-1m", command{Within: -time.Minute}, ""},
		{"--within=fast", command{}, `--within takes a time such as 30s or 2m, not "fast"`},
		{"--share=0.25", command{Share: 0.25}, ""},
		{"--share=NaN", command{}, `--share takes a number, not "NaN"`},
		{"--share=half", command{}, `--share takes a number, not "half"`},
		{"--trace-max=0x20", command{shared: shared{32}}, ""},
		{"--trace-max=many", command{}, `--trace-max takes a whole number, not "many"`},
		{"--trace-max=99999999999999999999", command{}, `--trace-max takes a whole number, not "99999999999999999999"`},
		{"--on-ask=a=b", command{OnAsk: "a=b"}, ""},
		{"--on-ask", command{}, "--on-ask needs a value: --on-ask ANSWER"},
		{"-vs", command{}, "-s needs a value: -s SERVER"},
		{"--first=x", command{}, "unknown flag --first"},
		{"-jx", command{}, "unknown flag -x"},
	} {
		var got command
		var s Set
		s.Add(&got)
		if tt.want.TraceMax == 0 {
			tt.want.TraceMax = 16
		}
		err := s.Read(strings.Fields(tt.words))
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q: error %v, want %s", tt.words, err, tt.err)
			}
		case err != nil || !reflect.DeepEqual(got, tt.want):
			t.Errorf("%q: %+v, %v; want %+v", tt.words, got, err, tt.want)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		words string
		want  command
		err   string
	}{
		{"add", command{Tool: "add"}, ""},
		{"add 2", command{Tool: "add", Count: 2}, ""},
		{"add 2 -x - a,b", command{Tool: "add", Count: 2, Words: []string{"-x", "-", "a,b"}}, ""},
		{"", command{}, "missing TOOL"},
		{"add two", command{}, `COUNT must be a whole number, not "two"`},
	} {
		var got command
		var s Set
		s.Add(&got)
		tt.want.TraceMax = 16
		err := s.Place(strings.Fields(tt.words))
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q: error %v, want %s", tt.words, err, tt.err)
			}
		case err != nil || !reflect.DeepEqual(got, tt.want):
			t.Errorf("%q: %+v, %v; want %+v", tt.words, got, err, tt.want)
		}
	}
	var one struct {
		Name string `arg:""`
	}
	var s Set
	s.Add(&one)
	if err := s.Place([]string{"a", "b"}); err == nil || err.Error() != `unexpected argument "b"` {
		t.Errorf("a word too many: %v", err)
	}
}

// Mistakes in the tags panic and name the field.
func TestAddPanics(t *testing.T) {
	for want, target := range map[string]any{
		"the field Ratio is float32": &struct {
			Ratio float32 `placeholder:"N"`
		}{},
		"--name needs a placeholder": &struct{ Name string }{},
		"two flags --name": &struct {
			Name string `placeholder:"NAME"`
			Of   string `name:"name" placeholder:"NAME"`
		}{},
		"two flags -n": &struct {
			Name  bool `short:"n"`
			Never bool `short:"n"`
		}{},
		"no value can reach the argument After": &struct {
			Words []string `arg:""`
			After string   `arg:"" optional:""`
		}{},
		`default: --max takes a whole number, not "x"`: &struct {
			Max int `default:"x" placeholder:"N"`
		}{},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("the panic says %q, want %q", got, want)
				}
			}()
			new(Set).Add(target)
		}()
	}
}

func TestCorrected(t *testing.T) {
	var s Set
	s.Add(new(command))
	put := func(unknown, value string) []string {
		if unknown == "--keep" {
			return nil
		}
		return []string{"new", value}
	}
	for words, want := range map[string]string{
		"a --json b":             "a --json b",
		"-sname --server x":      "-sname --server x",
		"--old=1 b":              "new 1 b",
		"--old 1 b":              "new 1 b",
		"--old --json":           "new  --json",
		"--keep 1":               "--keep 1",
		"--old - x -- --old":     "new - x -- --old",
		"--on-ask --old":         "--on-ask --old",
		"-x 1 --within 2s --old": "new 1 --within 2s new ",
	} {
		if got := strings.Join(s.Corrected(strings.Split(words, " "), put), " "); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}
