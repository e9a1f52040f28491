package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage   = "https://github.com/patchbay-dev/patchbay"
	licence    = "Apache-2.0"
	maintainer = "The maintainers of Patchbay <maintainers@patchbay.dev>"
	summary    = "Model Context Protocol: host, inspector, gateway and servers"
	about      = `Patchbay connects any host of the Model Context Protocol with any server,
on every revision of the protocol. It calls, records and debugs servers,
lets a person talk to a model that uses them, and serves many of them
behind one endpoint, with one policy and one audit log.`
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
		Maintainer: maintainer, Description: summary + "\n" + about, Homepage: homepage, License: licence,
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
	if format == "rpm" {
		info.Changelog = filepath.Join(r.work, "changelog.yaml")
		text := fmt.Sprintf("- semver: %q\n  date: %s\n  packager: %q\n  changes:\n    - note: The changes are in CHANGELOG.md.\n", r.version, r.time.Format(time.RFC3339), maintainer)
		if err := os.WriteFile(info.Changelog, []byte(text), 0o644); err != nil {
			return err
		}
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
	content := b.Bytes()
	if format == "apk" {
		if content, err = smaller(content); err != nil {
			return err
		}
	}
	return r.add("patchbay_"+r.version+"_"+s.arch+"."+format, content)
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
	if format == "deb" {
		documents = slices.DeleteFunc(documents, func(d member) bool { return d.name == "LICENSE" }) // copyright says where Debian has it
		extras = append(extras, r.debian()...)
	}
	for _, d := range append(documents, extras...) {
		to, content := "/usr/share/doc/patchbay/"+d.name, d.content
		switch dir, name := path.Split(d.name); dir {
		case "man/":
			to = "/usr/share/man/man1/" + name + ".gz"
		case "completions/":
			if to = completionPaths[path.Ext(name)]; to == "" {
				continue
			}
		case "systemd/":
			to = "/usr/lib/systemd/system/" + name
		case "systemd/user/":
			to = "/usr/lib/systemd/user/" + name
		case "lintian/":
			to = "/usr/share/lintian/overrides/" + name
		}
		if d.name == "CHANGELOG.md" && format == "deb" {
			to = "/usr/share/doc/patchbay/changelog.gz"
		}
		if strings.HasPrefix(d.name, "systemd/") && format == "apk" { // Alpine has OpenRC
			continue
		}
		if strings.HasSuffix(to, ".gz") {
			if content, err = compressed(content); err != nil {
				return nil, err
			}
		}
		from := filepath.Join(r.work, "installed", format, filepath.FromSlash(d.name))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, content, 0o644); err != nil {
			return nil, err
		}
		c := r.content(from, to, 0o644)
		if format == "rpm" && (strings.HasPrefix(to, "/usr/share/doc/") || strings.HasPrefix(to, "/usr/share/man/")) {
			c.Type = files.TypeRPMDoc
		}
		list = append(list, c)
	}
	return list, nil
}

// smaller compresses an unsigned apk better than nfpm does. It is two gzip streams: the files, and before them their description, which has
// the sum of the compressed files.
func smaller(apk []byte) ([]byte, error) {
	from := bytes.NewReader(apk)
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	control, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	before := sha256.Sum256(apk[len(apk)-from.Len():])
	if err := z.Reset(from); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	if data, err = compressed(data); err != nil {
		return nil, err
	}
	now := sha256.Sum256(data)
	old := []byte(hex.EncodeToString(before[:]))
	if bytes.Count(control, old) != 1 {
		return nil, errors.New("its description does not have the sum of its files")
	}
	// The sums of a tar file are those of its headers: other bytes of the same number in a file are no other tar file.
	control, err = compressed(bytes.Replace(control, old, []byte(hex.EncodeToString(now[:])), 1))
	return append(control, data...), err
}

// debian are the files that only Debian wants.
func (r *release) debian() []member {
	changes := fmt.Sprintf("patchbay (%s) unstable; urgency=medium\n\n  * The changes are in changelog.gz.\n\n -- %s  %s\n", r.version, maintainer, r.time.Format(time.RFC1123Z))
	const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: patchbay
Source: ` + homepage + `
Comment: The licences of the work of others in the program are in THIRD_PARTY_LICENSES.

Files: *
Copyright: The authors of Patchbay
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`
	const overrides = "# Go links programs so, and the same file runs on every distribution.\npatchbay: statically-linked-binary\n"
	return []member{{"copyright", 0o644, []byte(copyright)}, {"changelog.Debian.gz", 0o644, []byte(changes)}, {"lintian/patchbay", 0o644, []byte(overrides)}}
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
