package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

// formula is the file of Homebrew.
var formula = template.Must(template.New("").Parse(`class Patchbay < Formula
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "{{.Licence}}"
{{range $os := .Systems}}
  on_{{if eq $os "darwin"}}macos{{else}}linux{{end}} do
    on_intel do
      url "{{call $.URL $os "amd64"}}"
      sha256 "{{call $.Sum $os "amd64"}}"
    end
    on_arm do
      url "{{call $.URL $os "arm64"}}"
      sha256 "{{call $.Sum $os "arm64"}}"
    end
  end
{{end}}
  def install
    bin.install "patchbay"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/patchbay.bash" => "patchbay"
    zsh_completion.install "completions/patchbay.zsh" => "_patchbay"
    fish_completion.install "completions/patchbay.fish"
  end

  service do
    run [opt_bin/"patchbay", "up"]
    keep_alive true
  end

  test do
    assert_match "5", shell_output("#{bin}/patchbay call everything/add a=2 b=3")
  end
end
`))

// feeds makes the files of Homebrew and of Scoop.
func (r *release) feeds() error {
	name := func(os, arch string) string {
		end := ".tar.gz"
		if os == "windows" {
			end = ".zip"
		}
		return "patchbay_" + r.version + "_" + os + "_" + arch + end
	}
	url := func(os, arch string) string {
		return homepage + "/releases/download/v" + r.version + "/" + name(os, arch)
	}
	sum := func(os, arch string) (string, error) { return r.sum(name(os, arch)) }
	var b strings.Builder
	if err := formula.Execute(&b, map[string]any{
		"Summary": summary, "Homepage": homepage, "Version": r.version, "Licence": licence, "Systems": []string{"darwin", "linux"}, "URL": url, "Sum": sum,
	}); err != nil {
		return err
	}
	if err := r.add("patchbay.rb", []byte(b.String())); err != nil {
		return err
	}
	architectures := map[string]any{}
	for arch, word := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		hash, err := sum("windows", arch)
		if err != nil {
			return err
		}
		architectures[word] = map[string]string{"url": url("windows", arch), "hash": hash}
	}
	next := map[string]any{}
	for arch, word := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		next[word] = map[string]string{"url": strings.ReplaceAll(url("windows", arch), r.version, "$version")}
	}
	text, err := json.MarshalIndent(map[string]any{
		"version": r.version, "description": summary, "homepage": homepage, "license": licence, "bin": "patchbay.exe",
		"architecture": architectures, "checkver": "github", "autoupdate": map[string]any{"architecture": next},
	}, "", "    ")
	if err != nil {
		return err
	}
	return r.add("patchbay.json", append(text, '\n'))
}

// sum returns the checksum of a file of the release, in hexadecimal.
func (r *release) sum(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// chartVersion matches the lines of Chart.yaml with the version of the chart and of the program.
var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart makes the chart of Helm, whose version is that of the release, so that it takes the images of the release.
func (r *release) chart() error {
	var members []member
	dir := filepath.Join(r.root, "deploy", "helm", "patchbay")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name == "Chart.yaml" {
			content = chartVersion.ReplaceAll(content, []byte("$1: "+r.version))
		}
		members = append(members, member{filepath.ToSlash(name), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	content, err := tarred(members, "patchbay/", r.time)
	if err != nil {
		return err
	}
	return r.add("patchbay-"+r.version+"-helm.tgz", content)
}
