package chain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/accesslog"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/telemetry"
)

const (
	auditTime  = 2 * time.Second // that the last lines of the audit log may take
	maxServers = 16 << 20        // bytes of an mcp.json whose digest is in the audit log
)

// openAudit opens the audit log of gateway.yaml or of the flag.
func (c *Chain) openAudit() error {
	set, member := deploy.Audit{File: c.config.Audit}, false
	if f := c.config.File; f != nil && f.Audit != nil {
		set, member = *f.Audit, true
	}
	shared := set.File == "" && c.config.Calls
	if shared {
		var err error
		if set.File, err = audit.DefaultPath(); err != nil {
			return &Error{Err: err}
		}
		set.Sync = "none"
	}
	if set.File == "" {
		return nil
	}
	fault := func(of string, err error) error {
		if shared {
			return &Error{Err: fmt.Errorf("cannot log calls, so none is made: %w", err), Next: "give --gateway FILE with audit.file"}
		}
		if !member {
			return usage("--audit audit.jsonl", "--audit: %w", err)
		}
		return &Error{Err: deploy.Problems{c.config.File.Problem(of, of+": "+err.Error(), "")}, Next: "patchbay gateway check " + c.config.File.Path, Usage: true}
	}
	o := &audit.Options{
		Shared: shared, Interval: set.Checkpoint, Redactor: c.program.Redactor, Logger: c.program.Logger,
		Arguments: map[string]audit.Content{"redacted": audit.ContentRedacted, "none": audit.ContentNone}[set.Arguments],
		Sync:      map[string]audit.Sync{"none": audit.SyncNone}[set.Sync],
	}
	if f := c.config.File; f != nil && f.Cluster != nil && !shared {
		o.Node = f.Cluster.Node // the name that other nodes note
	}
	if set.Key != "" {
		var err error
		if o.Key, err = audit.LoadKey(set.Key); err != nil {
			return fault("audit.key", err)
		}
	}
	log, err := audit.Open(set.File, o)
	if err != nil {
		return fault("audit.file", err)
	}
	c.auditFile = set.File
	c.trail = &audit.Trail{
		Log: log, OnFailure: map[string]audit.Failure{"pass": audit.Pass}[set.OnFailure], Team: c.Team,
		Trusted: func(server string) bool { return c.about(server).Trusted },
		Identity: func(server string) string {
			if set := c.about(server).Config; set.Name != "" { // a view that refuses is named like a server
				return entry.Shown(set)
			}
			return ""
		},
	}
	c.trail.Owner = func(name string) (server, tool string) {
		if c.counters == nil || c.counters.Owner == nil {
			return "", ""
		}
		return c.counters.Owner(name)
	}
	c.trail.Unlisted = c.unlisted
	if c.config.HTTP {
		c.trail.IP, c.trail.Via = accesslog.Address, accesslog.Via
	}
	c.trail.TraceID = telemetry.TraceID
	return nil
}

// unlisted reports whether a tool is known to no server of the gateway, and to none of its views.
func (c *Chain) unlisted(server, tool string) bool {
	if c.views == nil {
		return false
	}
	set := c.views.now.Load()
	for i := range set.file {
		one := &set.file[i]
		if one.Name == server { // the view has refused the call
			server = ""
		}
		if slices.ContainsFunc(one.Changes, func(of deploy.Change) bool { return of.Name == tool }) {
			return false
		}
		if !one.Search {
			continue
		}
		for name := range tools(view.SearchTools().JSON()) {
			if name == tool {
				return false
			}
		}
	}
	return c.views.gateway.Unlisted(server, tool)
}

// Trail returns what writes the audit log; nil: there is none.
func (c *Chain) Trail() *audit.Trail { return c.trail }

// begun writes a line with the digests of the configuration.
func (c *Chain) begun() {
	detail := map[string]string{}
	if f := c.config.File; f != nil {
		detail["gateway"] = f.Digest
	}
	if c.rules != nil {
		detail["policy"] = c.rules.Digest()
	}
	maps.Copy(detail, c.servers())
	c.configured("start", detail)
}

// ServersChanged writes a line about a change of mcp.json to the audit log.
func (c *Chain) ServersChanged(change string) {
	detail := c.servers()
	detail["changed"] = change
	c.configured("changed", detail)
}

// AuditLog returns the path of the audit log; empty: none.
func (c *Chain) AuditLog() string { return c.auditFile }

// AuditKey returns the path of the public key that checks the log; empty: there is none beside the key that signs it.
func (c *Chain) AuditKey() string {
	if f := c.config.File; f != nil && f.Audit != nil && f.Audit.Key != "" {
		if _, err := os.Stat(f.Audit.Key + ".pub"); err == nil {
			return f.Audit.Key + ".pub"
		}
	}
	return ""
}

// Steered writes a line about what a person has done to a server, or without one to the gateway, to the
// audit log. It waits for the disk, so that the person finds the line; after 5 seconds the log goes on by itself.
func (c *Chain) Steered(by, event, server string, detail map[string]any) {
	raw, err := jsonx.Marshal(detail)
	if c.trail == nil || err != nil {
		return
	}
	e := audit.Entry{Kind: audit.Config, Event: event, Principal: &audit.Principal{ID: by}, Detail: raw}
	if server != "" {
		e.Server = &audit.Server{Name: server}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.trail.Log.Write(ctx, e); err != nil && ctx.Err() == nil {
		c.trail.Log.Add(e) // which is tried again
	}
}

// Unsteered writes a line about a refused request of a person to the audit log.
func (c *Chain) Unsteered(by, request string) {
	if c.trail != nil {
		c.trail.Log.Add(audit.Entry{Kind: audit.Denied, Method: request, Outcome: "denied", Principal: &audit.Principal{ID: by}, Reason: "the role admin is missing"})
	}
}

// servers returns the digest of mcp.json.
func (c *Chain) servers() map[string]string {
	detail := map[string]string{}
	if c.trail != nil && c.config.Servers != "" {
		if text, err := ownfile.ReadNow(c.config.Servers, maxServers); err == nil {
			detail["servers"] = fmt.Sprintf("sha256:%x", sha256.Sum256(text))
		}
	}
	return detail
}

// configured writes a line about the configuration to the audit log.
func (c *Chain) configured(event string, detail map[string]string) {
	if c.trail == nil || len(detail) == 0 {
		return
	}
	if raw, err := jsonx.Marshal(detail); err == nil {
		c.trail.Log.Add(audit.Entry{Kind: audit.Config, Event: event, Detail: raw})
	}
}

// closeAudit writes the last lines, for at most auditTime.
func (c *Chain) closeAudit() {
	if c.trail == nil {
		return
	}
	before := c.trail.Log.Stats().Dropped
	done := make(chan error, 1)
	go func() { done <- c.trail.Log.Close() }() // ends with the program at the latest
	ctx, cancel := context.WithTimeoutCause(context.Background(), auditTime, fmt.Errorf("%s takes too long to write", c.auditFile))
	defer cancel()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		lost := "the audit log ends without its stop line"
		s := c.trail.Log.Stats()
		if n := s.Queued + int(s.Dropped-before); n > 0 {
			lost = "the last " + screen.Quantity(n, "line") + " of the audit log are lost"
		}
		c.program.Talk.Always("patchbay: warning: " + lost + ": " + screen.Visible(err.Error()))
	}
}

// audit checks that the log and the key can be opened, or made. It changes no file.
func (c *check) audit() {
	a := c.file.Audit
	if a == nil {
		return
	}
	err := audit.Check(a.File)
	if err == nil {
		err = writable(a.File)
	}
	c.report("audit.file", err)
	if a.Key == "" {
		return
	}
	if filepath.Clean(a.Key) == filepath.Clean(a.File) {
		c.fault("audit.key", "name another file", "audit.key and audit.file are the same file")
		return
	}
	if err = audit.CheckKey(a.Key); err == nil {
		if _, err = os.Stat(a.Key); errors.Is(err, fs.ErrNotExist) { // it is made at the start
			err = writable(a.Key)
		}
	}
	c.report("audit.key", err)
}

// folder returns why files cannot be made in a folder, which is made if it does not exist.
func folder(dir string) error {
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err == nil && writes(dir) != nil {
		err = fmt.Errorf("the folder %s cannot be written to: %w", dir, writes(dir))
	}
	return err
}

// writable returns why a file can neither be written nor be made.
func writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder(filepath.Dir(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
