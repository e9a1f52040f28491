package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage = "https://github.com/patchbay-dev/patchbay"
	licence  = "Apache-2.0"
	summary  = "Model Context Protocol: host, inspector, gateway and servers"
	about    = `Patchbay connects any host of the Model Context Protocol with any server, on every
revision of the protocol. It calls, records and debugs servers, lets a person talk
to a model that uses them, and serves many of them behind one endpoint, with one
policy and one audit log.`
)

// packages makes packages for distributions of Linux.
func (r *release) packages() error {
	for _, s := range systems {
		if s.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm", "apk"} {
			if err := r.pack(s, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, s, err)
			}
		}
	}
	return nil
}

func (r *release) pack(s system, format string) error {
	contents, err := r.installed(s, format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "patchbay", Arch: s.arch, Platform: s.os, Version: r.version, VersionSchema: "semver", Section: "net", Priority: "optional",
		Maintainer: "The maintainers of Patchbay <maintainers@patchbay.dev>", Description: summary + "\n" + about, Homepage: homepage, License: licence,
		MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Recommends: []string{"ca-certificates"},
			Contents:   contents,
			RPM:        nfpm.RPM{Summary: summary, Group: "Applications/Internet", BuildHost: "localhost"},
		},
	})
	if format == "apk" { // it has no weak dependencies
		info.Recommends = nil
		info.Depends = []string{"ca-certificates"}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return r.add("patchbay_"+r.version+"_"+s.arch+"."+format, b.Bytes())
}

// installed returns what a package puts where.
func (r *release) installed(s system, format string) (files.Contents, error) {
	list := files.Contents{r.content(r.programs[s], "/usr/bin/patchbay", 0o755)}
	documents, err := r.documents()
	if err != nil {
		return nil, err
	}
	extras, err := r.extras()
	if err != nil {
		return nil, err
	}
	for _, d := range append(documents, extras...) {
		to := "/usr/share/doc/patchbay/" + d.name
		switch dir, name := path.Split(d.name); dir {
		case "man/":
			to = "/usr/share/man/man1/" + name
		case "completions/":
			if to = completionPaths[path.Ext(name)]; to == "" {
				continue
			}
		case "systemd/":
			to = "/usr/lib/systemd/system/" + name
		case "systemd/user/":
			to = "/usr/lib/systemd/user/" + name
		}
		if strings.HasPrefix(d.name, "systemd/") && format == "apk" { // Alpine has OpenRC
			continue
		}
		if d.name == "LICENSE" && format == "deb" {
			to = "/usr/share/doc/patchbay/copyright"
		}
		from := filepath.Join(r.work, "installed", filepath.FromSlash(d.name))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, d.content, 0o644); err != nil {
			return nil, err
		}
		list = append(list, r.content(from, to, 0o644))
	}
	return list, nil
}

// completionPaths are where distributions keep the completions of a shell, by the ending of the file in the archive.
var completionPaths = map[string]string{
	".bash": "/usr/share/bash-completion/completions/patchbay",
	".zsh":  "/usr/share/zsh/vendor-completions/_patchbay",
	".fish": "/usr/share/fish/vendor_completions.d/patchbay.fish",
}

func (r *release) content(from, to string, mode fs.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.time}}
}

// extras are the files for people that packages and archives have beside the documents: completions, manual pages and units of systemd.
func (r *release) extras() (list []member, err error) {
	own, err := r.own()
	if err != nil {
		return nil, err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(r.work, nil, own, "completion", shell)
		if err != nil {
			return nil, err
		}
		list = append(list, member{"completions/patchbay." + shell, 0o644, []byte(script + "\n")})
	}
	pages, err := r.manual()
	if err != nil {
		return nil, err
	}
	list = append(list, pages...)
	units := filepath.Join(r.root, "deploy", "systemd")
	return list, filepath.WalkDir(units, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		rel, relErr := filepath.Rel(units, p)
		list = append(list, member{"systemd/" + filepath.ToSlash(rel), 0o644, content})
		return cmp.Or(err, relErr)
	})
}
