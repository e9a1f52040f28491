package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user and group of containers, the "nonroot" of distroless images.
const user = "65532:65532"

// published is where images are published.
const published = "ghcr.io/patchbay-dev/patchbay"

// image makes a container image for Linux from nothing: the program, the certificates of authorities, and a temporary folder. It
// is an OCI layout in a tar file, as "docker load" and "skopeo copy oci-archive:FILE …" take it.
func (r *release) image() error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	members := []member{{name: "tmp/", mode: fs.ModeDir | fs.ModeSticky | 0o777}, {name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()}}
	for _, d := range documents {
		d.name = "usr/share/doc/patchbay/" + d.name
		members = append(members, d)
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, s := range systems {
		if s.os != "linux" {
			continue
		}
		program, err := os.ReadFile(r.programs[s])
		if err != nil {
			return err
		}
		img, err := r.container(s, append(members, member{"patchbay", 0o755, program}))
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: s.os, Architecture: s.arch}}})
	}
	name := published + ":" + r.version
	// One image by its name, of which each machine takes its own: tools refuse a layout with several.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name},
	}})
	dir := filepath.Join(r.work, "image")
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	return r.addTar("patchbay_"+r.version+"_image.tar", dir)
}

// container returns the image for a system.
func (r *release) container(s system, members []member) (v1.Image, error) {
	var files bytes.Buffer
	if err := writeTar(tar.NewWriter(&files), members, "", r.time); err != nil {
		return nil, err
	}
	small, err := compressed(files.Bytes())
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(small)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "patchbay " + r.version},
	})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = s.os, s.arch, v1.Time{Time: r.time}
	file.Config = v1.Config{
		User: user, Entrypoint: []string{"/patchbay"}, Cmd: []string{"help"}, WorkingDir: "/tmp", Env: []string{"PATH=/", "HOME=/tmp", "PATCHBAY_IMAGE=scratch"},
		ExposedPorts: map[string]struct{}{"7420/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "patchbay",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.source":   homepage,
			"org.opencontainers.image.licenses": licence,
		},
	}
	return mutate.ConfigFile(img, file)
}

// authorities returns the certificates of authorities that Mozilla trusts, as of the pinned module. Roots with limits that a
// file cannot say are left out.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// addTar writes a folder as a tar file, in the order of the names.
func (r *release) addTar(name, dir string) error {
	var members []member
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		members = append(members, member{filepath.ToSlash(rel), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeTar(tar.NewWriter(&b), members, "", r.time); err != nil {
		return err
	}
	return r.add(name, b.Bytes())
}
