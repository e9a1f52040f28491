package deploy

import (
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// Problem is one fault of a file, or one warning about it.
type Problem = yamlfile.Problem

// Problems are the faults of a file, in its order. As an error its text has one line for each.
type Problems = yamlfile.Problems

// File is a deployment. File names in it are absolute.
type File struct {
	Path      string // as it was given
	Digest    string // SHA-256 of its content, as "sha256:" and hex
	Servers   string // path of mcp.json; empty: the program's own choice
	Listen    Listen
	Auth      []string // SPECs of "patchbay help auth"; file names in them are relative to Dir
	Login     *Login   // nil: none
	Page      *Page    // nil: none
	Ready     Ready
	Policy    string // path of the rules; empty: none
	Teams     Teams
	Limits    []string   // SPECs of "patchbay help limits"
	Audit     *Audit     // nil: none
	Telemetry *Telemetry // nil: none
	Record    *Record    // nil: none
	Cluster   *Cluster   // nil: the gateway is alone
	Views     []View     // in the order of the file

	Warnings Problems // in the order of the file
	Notes    Problems // likewise: what is as the file says, and may be a surprise
	Files    []string // the files that values of the form {file: PATH} were read from

	places map[string]place // by member, such as "listen.http" and "auth[1]"
}

// Listen is the addresses of a gateway and its certificate.
type Listen struct {
	HTTP    string // of the MCP endpoint, as written; empty: the program's default
	Metrics string // of /metrics, as written; empty: none
	Admin   string // of /admin/v1, as written; empty: none
	API     bool   // callers without MCP are served at /api of HTTP
	Cert    string // PEM file with the certificate and its chain; empty: plain HTTP
	Key     string // PEM file; empty: the key is in Cert
}

// Ready says when a gateway may get traffic.
type Ready struct {
	Wait    time.Duration // how long servers that are not required may delay it; default 5 seconds
	Require []string      // servers without which it is not ready, beside those that mcp.json requires
}

// Teams finds the team of a caller. The zero value finds none.
type Teams struct {
	From    string // principal.roles, principal.scopes, principal.id or principal.claims.NAME
	Members []Team // in the order of the file; the first match counts
}

// Team is a team and the patterns of its members, in which * stands for any text.
type Team struct {
	Name     string
	Patterns []string
}

// Of returns the team of a caller for whom Teams.From has these values; empty: none.
func (t Teams) Of(values []string) string {
	for _, team := range t.Members {
		for _, pattern := range team.Patterns {
			if slices.ContainsFunc(values, func(v string) bool { return wildcard.Match(pattern, v) }) {
				return team.Name
			}
		}
	}
	return ""
}

// Audit says how calls are audited.
type Audit struct {
	File       string        // rotated files stand beside it
	Arguments  string        // digest (the default), redacted or none
	Checkpoint time.Duration // time between signed checkpoints; default 10 seconds
	Key        string        // Ed25519 key for the checkpoints; empty: they are not signed
	OnFailure  string        // refuse (the default): a call that cannot be audited is refused; pass: it is made
	Sync       string        // group (the default): begins are on disk before the call; none: the system writes them later
}

// Telemetry says where traces and metrics are sent.
type Telemetry struct {
	OTLP    string // URL of a collector, over HTTP
	Content string // none (the default), or redacted: arguments and results are sent without their secrets

	Headers map[string]string // of each request to the collector, such as an API key
}

// Record says where frames are recorded.
type Record struct {
	Dir   string
	Bytes int64         // at most, in all files together; default 1 GiB
	Age   time.Duration // of the oldest file; default 7 days
}

// place is where a member is written.
type place struct {
	line, column int
	literal      bool // its value stands there itself
}

// Dir returns the folder that relative file names refer to.
func (f *File) Dir() string { return filepath.Dir(f.Path) }

// Problem returns a problem at the place of a member, such as "listen.http" or "auth[1]"; at the
// beginning of the file if it does not have the member.
func (f *File) Problem(member, text, fix string) Problem {
	at, ok := f.places[member]
	if !ok {
		at = place{1, 1, true}
	}
	return Problem{Path: f.Path, Line: at.line, Column: at.column, Text: text, Fix: fix}
}

// Has reports whether the file has a member, such as "listen.http".
func (f *File) Has(member string) bool {
	_, ok := f.places[member]
	return ok
}

// Literal reports whether the value of a member such as "auth[1]" stands in the file itself, with
// neither a variable nor another file, so that it may be shown.
func (f *File) Literal(member string) bool { return f.places[member].literal }

// Changed returns the members whose values differ from those of another reading of the file, such as
// "limits" and "listen.http", in the order of [File]. A nil file is an empty one.
func (f *File) Changed(from *File) (members []string) {
	if from == nil {
		from = &File{Ready: Ready{Wait: defaultWait}}
	}
	now, was := reflect.ValueOf(f).Elem(), reflect.ValueOf(from).Elem()
	for _, name := range []string{"Servers", "Listen", "Auth", "Login", "Page", "Ready", "Policy", "Teams", "Limits", "Audit", "Telemetry", "Record", "Cluster", "Views"} {
		a, b := now.FieldByName(name), was.FieldByName(name)
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		if name != "Listen" {
			members = append(members, memberName(name))
			continue
		}
		for i := range a.NumField() {
			if !a.Field(i).Equal(b.Field(i)) {
				members = append(members, "listen."+memberName(a.Type().Field(i).Name))
			}
		}
	}
	return members
}
