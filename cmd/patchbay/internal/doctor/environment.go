package doctor

import (
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// maxWanted bounds the variables that a report names.
const maxWanted = 3

// wanted returns variables of the person's environment that the failed command seems to need and
// does not get: those that its standard error names, those named like the server and like a secret,
// and those of proxies and CA files if its standard error mentions the network. It does not look at
// values.
func (e *Exam) wanted() []string {
	s := e.Server
	if s.Command == "" || s.InheritEnv {
		return nil
	}
	said := strings.Join(e.stderr, "\n")
	about := longWords(append([]string{s.Name, path.Base(s.Command)}, s.Args...))
	network := networkTrouble().MatchString(said)
	var named, likely []string
	given := slices.Collect(maps.Keys(s.Env))
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if name == "" || value == "" || process.Passes(name, value, runtime.GOOS) || slices.Contains(given, name) || strings.HasPrefix(name, "PATCHBAY_") {
			continue
		}
		first, _, more := strings.Cut(strings.ToLower(name), "_")
		switch {
		case len(name) >= 4 && hasWord(said, name):
			named = append(named, name)
		case network && slices.Contains(networkVariables, strings.ToUpper(name)),
			more && secrets.Name(name) && slices.Contains(about, first):
			likely = append(likely, name)
		}
	}
	slices.Sort(named)
	slices.Sort(likely)
	out := append(named, likely...)
	return out[:min(len(out), maxWanted)]
}

var (
	networkTrouble = pattern.Lazy(`(?i)\b(ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|proxy|certificate|network|getaddrinfo|connection refused|timed out)\b`)

	networkVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}

	wordBreaks = pattern.Lazy(`[^A-Za-z0-9]+`)
)

// longWords returns the words of names and arguments, in lower case, that are long enough to be
// distinctive.
func longWords(texts []string) (words []string) {
	for _, text := range texts {
		for _, w := range wordBreaks().Split(strings.ToLower(text), -1) {
			if len(w) >= 3 {
				words = append(words, w)
			}
		}
	}
	return words
}

// hasWord reports whether a text contains a name as a whole word.
func hasWord(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if !partOfName(before, len(before)-1) && !partOfName(after, 0) {
			return true
		}
		rest = after
	}
}

func partOfName(s string, i int) bool {
	return i >= 0 && i < len(s) && (s[i] == '_' || s[i] >= '0' && s[i] <= '9' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= 'a' && s[i] <= 'z')
}

// PassOn describes how to pass variables on to a server. It names them without their values.
func PassOn(names []string, server, source string) string {
	pairs := make([]string, len(names))
	for i, name := range names {
		pairs[i] = `"` + name + `": "${` + name + `}"`
	}
	is, to := "is", screen.Shell([]string{server})
	if len(names) > 1 {
		is = "are"
	}
	if source != "" {
		to += " (" + entry.HereLine(source) + ")"
	}
	return strings.Join(names, ", ") + " " + is + " set here but not passed to it; if it needs that, add \"env\": {" + strings.Join(pairs, ", ") + "} to " + to
}
