package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Files and folders that usually hold secrets are kept back unless [Options.Secrets] is set: lists do
// not show them, and a path to one is refused, also by a link within the root. A root itself may be
// one: somebody has named it.

// secretNames are patterns of their names, in lower case.
var secretNames = []string{
	".git", ".hg", ".svn", ".jj", // they hold remotes with tokens, all that was ever committed, and hooks that are run
	".env", ".env.*", "*.env", ".envrc",
	".ssh", ".gnupg", ".aws", ".azure", ".kube",
	".netrc", "_netrc", ".git-credentials", ".pgpass", ".npmrc", ".pypirc",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
	"*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx",
}

// sampleWords make a name one of an example, which holds no secrets: .env.example.
var sampleWords = []string{"example", "sample", "template", "dist"}

// secretName tells whether a name of a file or folder is one of those that are kept back. Case does
// not matter, as it does not on all systems.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, pattern := range secretNames {
		if ok, _ := path.Match(pattern, name); ok {
			return !strings.Contains(name, ".env") || !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return slices.Contains(sampleWords, part) })
		}
	}
	return false
}

// secretPath tells whether a part of a slashed path has such a name.
func secretPath(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), secretName)
}

// keptBack returns an error if the target, or what it leads to by links, is kept back.
func (t target) keptBack() error {
	if t.place.secrets || t.rel == "." {
		return nil
	}
	if !secretPath(t.rel) && !secretPath(t.linked()) {
		return nil
	}
	return fmt.Errorf("%q is kept back, as files of its name may hold secrets; the server serves them if it is started with --secrets", clip(t.shown))
}

// linked is the path in the place that links lead to, as far as it exists; "." if that is elsewhere.
func (t target) linked() string {
	base, err := filepath.EvalSymlinks(filepath.FromSlash(t.place.spellings[0]))
	if err != nil {
		return "."
	}
	for name := t.name(); name != "."; name = filepath.Dir(name) {
		real, err := filepath.EvalSymlinks(filepath.Join(base, name))
		if err != nil {
			continue // it is not there, or leads nowhere: so does what is below it
		}
		if rel, err := filepath.Rel(base, real); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
		return "."
	}
	return "."
}

// shown returns the names of a folder that are not kept back, and how many are.
func (p *place) shown(names []string) (kept []string, back int) {
	if p.secrets {
		return names, 0
	}
	kept = slices.DeleteFunc(slices.Clone(names), secretName)
	return kept, len(names) - len(kept)
}

// backNote tells how many entries are kept back.
func backNote(n int) string {
	return plural(n, "entry", "entries") + " kept back, such as .git, .env and keys"
}

var errPrivateKey = errors.New("is a private key and kept back; the server serves it if it is started with --secrets")

// isPrivateKey tells whether a file begins as private keys in PEM do, whatever its name is.
func isPrivateKey(f *os.File) bool {
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf")), []byte("\n"))
	return bytes.HasPrefix(line, []byte("-----BEGIN ")) && bytes.Contains(line, []byte("PRIVATE KEY"))
}
