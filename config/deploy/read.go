package deploy

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// later are members that this version does not support yet.
var later = []string{"budgets", "guards", "approval", "vault", "lock"}

const (
	maxItems = 1000 // of a list or a mapping

	defaultWait       = 5 * time.Second
	defaultCheckpoint = 10 * time.Second
	defaultBytes      = 1 << 30
	defaultAge        = 7 * day

	plainFix = "write ${NAME} or {file: PATH} in place of it"
)

// Load reads a file. Its faults are [Problems].
func Load(path string) (*File, error) {
	data, err := ownfile.ReadNow(path, yamlfile.MaxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the content of a file. Faults are [Problems] and name the file as path.
func Parse(path string, data []byte) (*File, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	r := &reader{Reader: yamlfile.Reader{Path: path}, dir: dir, file: &File{Path: path, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Ready: Ready{Wait: defaultWait}, places: map[string]place{}}}
	r.read(data)
	if faults := r.Faults(); len(faults) > 0 {
		return nil, faults
	}
	return r.file, nil
}

// reader reads one file.
type reader struct {
	yamlfile.Reader
	dir  string // absolute, of the file
	file *File
}

func (r *reader) read(data []byte) {
	root := r.Root(data, "servers: mcp.json")
	if root == nil {
		return
	}
	f := r.file
	r.mapping(root, "", map[string]func(*yaml.Node){
		"servers":   func(n *yaml.Node) { f.Servers = r.path(n, "servers") },
		"listen":    r.listen,
		"auth":      func(n *yaml.Node) { f.Auth = r.list(n, "auth") },
		"login":     r.login,
		"page":      r.page,
		"ready":     r.ready,
		"policy":    func(n *yaml.Node) { f.Policy = r.path(n, "policy") },
		"teams":     r.teams,
		"limits":    func(n *yaml.Node) { f.Limits = r.list(n, "limits") },
		"audit":     r.audit,
		"telemetry": r.telemetry,
		"record":    r.record,
		"cluster":   r.cluster,
		"views":     r.views,
	})
	if f.Page != nil {
		r.pageFits()
	}
}

func (r *reader) listen(n *yaml.Node) {
	l := &r.file.Listen
	r.mapping(n, "listen", map[string]func(*yaml.Node){
		"http":    func(n *yaml.Node) { l.HTTP = r.text(n, "listen.http") },
		"metrics": func(n *yaml.Node) { l.Metrics = r.text(n, "listen.metrics") },
		"admin":   func(n *yaml.Node) { l.Admin = r.text(n, "listen.admin") },
		"api":     func(n *yaml.Node) { l.API = r.word(n, "listen.api", "true", "false") == "true" },
		"cert":    func(n *yaml.Node) { l.Cert = r.path(n, "listen.cert") },
		"key":     func(n *yaml.Node) { l.Key = r.path(n, "listen.key") },
	})
	if l.Key != "" && l.Cert == "" {
		r.Fault(n, "add cert:", "listen.key needs listen.cert")
	}
}

func (r *reader) ready(n *yaml.Node) {
	ready := &r.file.Ready
	r.mapping(n, "ready", map[string]func(*yaml.Node){
		"wait":    func(n *yaml.Node) { ready.Wait = r.duration(n, "ready.wait", 0, 10*time.Minute) },
		"require": func(n *yaml.Node) { ready.Require = r.list(n, "ready.require") },
	})
}

func (r *reader) teams(n *yaml.Node) {
	t := &r.file.Teams
	ok := r.mapping(n, "teams", map[string]func(*yaml.Node){
		"from": func(n *yaml.Node) {
			t.From = r.text(n, "teams.from")
			claim, ofClaims := strings.CutPrefix(t.From, "principal.claims.")
			if t.From != "" && !(ofClaims && !slices.Contains(strings.Split(claim, "."), "")) && !slices.Contains([]string{"principal.roles", "principal.scopes", "principal.id"}, t.From) {
				r.Fault(n, "use principal.roles, principal.scopes, principal.id or principal.claims.NAME", "teams.from has the unknown source %s", yamlfile.Quote(t.From))
			}
		},
		"members": func(n *yaml.Node) {
			r.Members(n, "teams.members", func(key, value *yaml.Node) {
				if key.Value == "" {
					r.Fault(key, "name it", "a team has no name")
				}
				t.Members = append(t.Members, Team{key.Value, r.list(value, "teams.members."+key.Value)})
			})
		},
	})
	if ok && !(r.file.Has("teams.from") && t.Members != nil) {
		r.Fault(n, "teams: {from: principal.roles, members: {dev: [\"eng-*\"]}}", "teams needs from and members")
	}
}

func (r *reader) audit(n *yaml.Node) {
	a := &Audit{Arguments: "digest", Checkpoint: defaultCheckpoint, OnFailure: "refuse", Sync: "group"}
	r.file.Audit = a
	ok := r.mapping(n, "audit", map[string]func(*yaml.Node){
		"file":       func(n *yaml.Node) { a.File = r.path(n, "audit.file") },
		"arguments":  func(n *yaml.Node) { a.Arguments = r.word(n, "audit.arguments", "digest", "redacted", "none") },
		"checkpoint": func(n *yaml.Node) { a.Checkpoint = r.duration(n, "audit.checkpoint", time.Second, time.Hour) },
		"key":        func(n *yaml.Node) { a.Key = r.path(n, "audit.key") },
		"onFailure":  func(n *yaml.Node) { a.OnFailure = r.word(n, "audit.onFailure", "refuse", "pass") },
		"sync":       func(n *yaml.Node) { a.Sync = r.word(n, "audit.sync", "group", "none") },
	})
	if ok {
		r.needs(n, "audit", "file", "audit.jsonl")
	}
}

func (r *reader) telemetry(n *yaml.Node) {
	t := &Telemetry{Content: "none"}
	r.file.Telemetry = t
	ok := r.mapping(n, "telemetry", map[string]func(*yaml.Node){
		"otlp": func(n *yaml.Node) {
			t.OTLP = r.text(n, "telemetry.otlp")
			u, err := url.Parse(t.OTLP)
			switch {
			case t.OTLP == "": // a fault already
			case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
				r.Fault(n, "write it like http://collector:4318", "telemetry.otlp is not the URL of a collector")
			case u.User != nil:
				r.Fault(n, "write it in telemetry.headers", "telemetry.otlp has a user name or a password")
			}
		},
		"content": func(n *yaml.Node) { t.Content = r.word(n, "telemetry.content", "none", "redacted") },
		"headers": func(n *yaml.Node) {
			t.Headers = map[string]string{}
			r.note(n, "telemetry.headers")
			r.Members(n, "telemetry.headers", func(key, value *yaml.Node) {
				t.Headers[key.Value] = r.text(value, "telemetry.headers."+key.Value)
				if literal(value) {
					r.warn(value, plainFix, "telemetry.headers has a value in plain text, which is often a secret")
				}
			})
		},
	})
	if ok {
		r.needs(n, "telemetry", "otlp", "http://collector:4318")
	}
}

func (r *reader) record(n *yaml.Node) {
	rec := &Record{Bytes: defaultBytes, Age: defaultAge}
	r.file.Record = rec
	ok := r.mapping(n, "record", map[string]func(*yaml.Node){
		"dir":   func(n *yaml.Node) { rec.Dir = r.path(n, "record.dir") },
		"bytes": func(n *yaml.Node) { rec.Bytes = r.size(n, "record.bytes", 1<<20, 1<<50) },
		"age":   func(n *yaml.Node) { rec.Age = r.duration(n, "record.age", time.Minute, 3660*day) },
	})
	if ok {
		r.needs(n, "record", "dir", "frames")
	}
}

// needs reports a missing member of a mapping.
func (r *reader) needs(n *yaml.Node, of, member, example string) {
	if !r.file.Has(of + "." + member) {
		r.Fault(n, fmt.Sprintf("%s: {%s: %s}", of, member, example), "%s needs %s", of, member)
	}
}

// mapping reads the members of a mapping, "" for the whole file, and reports whether it is one.
func (r *reader) mapping(n *yaml.Node, of string, members map[string]func(*yaml.Node)) bool {
	what, prefix := of, of+"."
	if of == "" {
		what, prefix = "the file", ""
	}
	r.note(n, of)
	return r.Members(n, what, func(key, value *yaml.Node) {
		switch read := members[key.Value]; {
		case read != nil:
			read(value)
		case slices.Contains(later, prefix+key.Value):
			r.Fault(key, "remove it", "%s is not supported yet", prefix+key.Value)
		default:
			names := make([]string, 0, len(members))
			for name := range members {
				names = append(names, name)
			}
			slices.Sort(names)
			r.Fault(key, yamlfile.Nearest(key.Value, names), "%s has no member %s", what, yamlfile.Quote(key.Value))
		}
	})
}

// note keeps the place of a member.
func (r *reader) note(n *yaml.Node, member string) {
	if member != "" {
		r.file.places[member] = place{max(n.Line, 1), max(n.Column, 1), literal(n)}
	}
}

// warn records a warning at a node.
func (r *reader) warn(n *yaml.Node, fix, text string) {
	r.file.Warnings = append(r.file.Warnings, Problem{Path: r.Path, Line: n.Line, Column: n.Column, Text: text, Fix: fix})
}
