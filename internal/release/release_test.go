package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository with one commit, in the working folder of the test.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, os.DevNull)
	}
	if err := os.WriteFile("file", []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "file"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one"}} {
		command(t, "git", args...)
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// A release is made from a commit with one tag and a tree without changes; a snapshot from any.
func TestDescribe(t *testing.T) {
	repository(t)
	fails := func(want string) {
		t.Helper()
		if err := new(release).describe(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("describe = %v, want %q", err, want)
		}
	}
	fails("has no tag such as v0.1.0")
	command(t, "git", "tag", "v0.1.0")
	r := new(release)
	if err := r.describe(false); err != nil || r.version != "0.1.0" {
		t.Errorf("version %q, %v", r.version, err)
	}
	command(t, "git", "tag", "v0.2.0")
	fails("has several versions: v0.1.0, v0.2.0")
	command(t, "git", "tag", "-d", "v0.2.0")
	if err := os.WriteFile("file", []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("changes that are not committed")
	if err := r.describe(true); err != nil || !strings.HasPrefix(r.version, "0.0.0-") || !strings.HasSuffix(r.version, "-changed") {
		t.Errorf("version %q, %v", r.version, err)
	}
}

// A program with a module whose licence is not in THIRD_PARTY_LICENSES ends the release.
func TestModulesHaveLicences(t *testing.T) {
	own, err := os.Executable() // the modules of this test are not those of the program
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: filepath.Join("..", ".."), programs: map[system]string{systems[0]: own}}
	if err := r.collectModules(); err == nil || !strings.Contains(err.Error(), "THIRD_PARTY_LICENSES does not have the licence of github.com/goreleaser/nfpm/v2 v2.") {
		t.Errorf("collectModules = %v", err)
	}
}

// The chart of a release has its version, in front of everything that helm needs.
func TestChart(t *testing.T) {
	r := &release{root: filepath.Join("..", ".."), out: t.TempDir(), version: "1.2.3-rc.1"}
	if err := r.chart(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command(t, "tar", "-xzf", filepath.Join(r.out, "patchbay-1.2.3-rc.1-helm.tgz"), "-C", dir)
	text, err := os.ReadFile(filepath.Join(dir, "patchbay", "Chart.yaml"))
	if err != nil || strings.Count(string(text), "ersion: 1.2.3-rc.1\n") != 2 {
		t.Errorf("Chart.yaml: %v\n%s", err, text)
	}
	if err := os.CopyFS(filepath.Join(dir, "own"), os.DirFS(filepath.Join(r.root, "deploy", "helm", "patchbay"))); err != nil {
		t.Fatal(err)
	}
	command(t, "diff", "-r", "-x", "Chart.yaml", filepath.Join(dir, "patchbay"), filepath.Join(dir, "own"))
}

func TestManual(t *testing.T) {
	r := &release{root: filepath.Join("..", ".."), version: "1.2.3"}
	pages, err := r.manual()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, p := range pages {
		names[p.name] = string(p.content)
	}
	up := names["man/patchbay-up.1"]
	for _, want := range []string{".TH PATCHBAY\\-UP 1 ", "patchbay\\-up \\- Serve all servers of mcp.json behind one endpoint", "\\-\\-http ADDR", ".EX\n", ".EE\n"} {
		if !strings.Contains(up, want) {
			t.Errorf("the page of up lacks %q:\n%s", want, up)
		}
	}
	if all := names["man/patchbay.1"]; !strings.Contains(all, ".BR patchbay\\-config\\-model\\-add (1)") {
		t.Errorf("the page of the program lacks a verb:\n%s", all)
	}
	for name, text := range names {
		if strings.Contains(text, ".PP\n.PP\n") || strings.Contains(text, ".SH DESCRIPTION\n.PP\n") || strings.Contains(text, ".PP\n.SH ") {
			t.Errorf("%s has a paragraph without text, of which mandoc warns:\n%s", name, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, ".") && !strings.ContainsAny(line[1:2], "ABEIPST") {
				t.Errorf("%s: %q would be taken for a macro", name, line)
			}
		}
	}
}

// The signature fits the checksums, and a file that was changed is found.
func TestSums(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := readKey(key)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{out: t.TempDir()}
	if err := r.add("b", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := r.add("a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := r.sums(signer); err != nil {
		t.Fatal(err)
	}
	sums, _ := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	signature, _ := os.ReadFile(filepath.Join(r.out, "SHA256SUMS.sig"))
	const want = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a\n3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b\n"
	if string(sums) != want {
		t.Errorf("SHA256SUMS:\n%swant\n%s", sums, want)
	}
	if !ed25519.Verify(public, sums, signature) {
		t.Error("the signature does not fit")
	}
	sums[0] ^= 1
	if ed25519.Verify(public, sums, signature) {
		t.Error("the signature fits other checksums")
	}
	if err := os.WriteFile(key, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(key); err == nil || !strings.Contains(err.Error(), "openssl genpkey -algorithm ed25519") {
		t.Errorf("a bad key: %v", err)
	}
}

// A folder with files in it is refused, because old files would look like those of the release.
func TestFolderIsEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, "", true); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("run = %v", err)
	}
}

// An apk that is compressed again has the same files, and its description has their new sum. One that is signed is refused.
func TestSmaller(t *testing.T) {
	stream := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	content := strings.Repeat("files ", 100)
	data := stream(content)
	apk := append(stream(fmt.Sprintf("size = 1\ndatahash = %x\n", sha256.Sum256(data))), data...)
	out, err := smaller(apk)
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.NewReader(out)
	z, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	control, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("size = 1\ndatahash = %x\n", sha256.Sum256(out[len(out)-from.Len():])); string(control) != want {
		t.Errorf("description %q, want %q", control, want)
	}
	if err := z.Reset(from); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != content {
		t.Errorf("files %q, %v", got, err)
	}
	if out, err := smaller(append(stream("signature"), apk...)); err == nil {
		t.Errorf("a signed apk became %d bytes", len(out))
	}
}
