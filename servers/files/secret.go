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

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Files and folders that usually hold secrets are withheld unless [Options.Secrets] is set: lists
// do not show them, and a path to one is refused, also by a link within the root. A root itself may
// be one, because the user has named it.

// secretNames are patterns of the names of such files, in lower case.
var secretNames = []string{
	".git", ".hg", ".svn", ".jj", // they hold remotes with tokens, all commits, and hooks that run
	".env", ".env.*", "*.env", ".envrc",
	".ssh", ".gnupg", ".aws", ".azure", ".kube",
	".netrc", "_netrc", ".git-credentials", ".pgpass", ".npmrc", ".pypirc",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
	"*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx",
}

// sampleWords mark the name of an example, which does not hold secrets: .env.example.
var sampleWords = []string{"example", "sample", "template", "dist"}

// secretName reports whether files or folders of a name are withheld. It ignores case, as some
// systems do.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, pattern := range secretNames {
		if ok, _ := path.Match(pattern, name); ok {
			return !strings.Contains(name, ".env") || !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return slices.Contains(sampleWords, part) })
		}
	}
	return false
}

// secretPath reports whether a part of a slashed path has such a name.
func secretPath(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), secretName)
}

// keptBack returns an error if the target, or the file that it links to, is withheld.
func (t target) keptBack() error {
	if t.place.secrets || t.rel == "." {
		return nil
	}
	if !secretPath(t.rel) && !secretPath(t.linked()) {
		return nil
	}
	return fmt.Errorf("%q is withheld, as files of this name may hold secrets; start the server with --secrets to serve them", text.Short(t.shown))
}

// linked resolves links to a path in the place, as far as it exists; "." if that is elsewhere.
func (t target) linked() string {
	base, err := filepath.EvalSymlinks(filepath.FromSlash(t.place.spellings[0]))
	if err != nil {
		return "."
	}
	for name := t.name(); name != "."; name = filepath.Dir(name) {
		real, err := filepath.EvalSymlinks(filepath.Join(base, name))
		if err != nil {
			continue // it does not exist, or is a broken link, and so is everything below it
		}
		if rel, err := filepath.Rel(base, real); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
		return "."
	}
	return "."
}

// shown returns the names in a folder that are not withheld, and the number of the others.
func (p *place) shown(names []string) (kept []string, back int) {
	if p.secrets {
		return names, 0
	}
	kept = slices.DeleteFunc(slices.Clone(names), secretName)
	return kept, len(names) - len(kept)
}

// backNote says how many entries are withheld.
func backNote(n int) string {
	return plural(n, "entry", "entries") + " withheld, such as .git, .env and keys"
}

var errPrivateKey = errors.New("is a private key and withheld; start the server with --secrets to serve it")

// isPrivateKey reports whether a file begins like a private key in PEM. Its name does not matter.
func isPrivateKey(f *os.File) bool {
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf")), []byte("\n"))
	return bytes.HasPrefix(line, []byte("-----BEGIN ")) && bytes.Contains(line, []byte("PRIVATE KEY"))
}
