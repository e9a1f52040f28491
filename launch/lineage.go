package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A command of a configuration may start this program again, which would read the same
// configuration and start the command again, until memory runs out. To prevent this, the
// environment of each command lists the servers that have led to it, and no program among its
// descendants starts one of these again.

// parentName is the variable with the lineage: the links of a chain, oldest first, joined by
// commas. A link is the server that was started and, if it was started by an up that serves a file
// as a whole, "+" and the file; both as hashes.
const parentName = "PATCHBAY_PARENT"

// lineage is the chain of servers that have led to this process, and its addition for its children.
type lineage struct {
	chain []string
	file  string // the file that this process serves as a whole, as [hashOf]; empty: none
}

// origins returns the lineage of this process. It is read once.
func (e *Env) origins() *lineage {
	e.origin.Do(func() { e.lineage = newLineage() })
	return e.lineage
}

// Nested reports whether this process was started, directly or not, by a server that Patchbay has
// opened.
func (e *Env) Nested() bool { return len(e.origins().chain) > 0 }

// Serves records that this process serves a configuration as a whole. It returns an error if a
// process that has led to this one does so too: every server of the file is already served there.
func (e *Env) Serves(path string) error { return e.origins().serves(path) }

func newLineage() *lineage {
	l := &lineage{}
	text, ok := os.LookupEnv(parentName)
	if !ok {
		text = parentOfAncestors()
	}
	if text != "" {
		l.chain = strings.Split(text, ",")
	}
	return l
}

// IsLoop reports whether a server was not opened because this program would have started itself.
func IsLoop(err error) bool { return errors.Is(err, errOwnParent) || errors.Is(err, errDeep) }

var (
	errOwnParent = errors.New("it has started this program, and starting it again would loop")
	errDeep      = fmt.Errorf("%d programs have started one another: do their configurations form a loop?", hop.Most)
)

// refuse returns an error for a server with a command that must not be started from here.
func (l *lineage) refuse(s config.Server) error {
	self := serverHash(s)
	for _, link := range l.chain {
		if entry, _, _ := strings.Cut(link, "+"); entry == self {
			return errOwnParent
		}
	}
	if len(l.chain) >= hop.Most {
		return errDeep
	}
	return nil
}

// serves records that this process serves a file as a whole. It returns an error if a process that
// has led to this one does so too.
func (l *lineage) serves(path string) error {
	l.file = fileHash(path)
	for _, link := range l.chain {
		if _, file, _ := strings.Cut(link, "+"); file == l.file {
			return fmt.Errorf("%s is served by the patchbay up that has started this one", path)
		}
	}
	return nil
}

// env returns the variable for the command of a server.
func (l *lineage) env(s config.Server) string {
	link := serverHash(s)
	if l.file != "" {
		link += "+" + l.file
	}
	return parentName + "=" + strings.Join(append(l.chain[:len(l.chain):len(l.chain)], link), ",")
}

// serverHash identifies a server: by its file and name, or by what was typed and in which folder.
func serverHash(s config.Server) string {
	if s.Source != "" {
		return hashOf("server", ownfile.RealPath(fileOf(s)), s.Name)
	}
	dir, _ := os.Getwd()
	return hashOf(append([]string{"command", dir, s.Dir, s.Command}, s.Args...)...)
}

func fileHash(path string) string { return hashOf("file", ownfile.RealPath(path)) }

func hashOf(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		fmt.Fprintf(h, "%q\n", w)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// loopOf returns how a server that could not be opened leads back to this program, or "" if it does
// not.
func loopOf(err error) string {
	var exit *mcp.ExitError
	var status *mcp.HTTPError
	switch {
	case errors.Is(err, errOwnParent):
		return errOwnParent.Error()
	case errors.Is(err, errDeep):
		return errDeep.Error()
	case errors.As(err, &exit) && exit.State == fmt.Sprintf("exit status %d", process.ExitLoop):
		return "it is this patchbay up itself, started again"
	case errors.As(err, &status) && status.Status == http.StatusLoopDetected, errors.Is(err, hop.ErrLoop):
		return "it is this patchbay itself, by the address where it listens"
	}
	return ""
}

// fileOf returns the file that defines a server.
func fileOf(s config.Server) string {
	if i := strings.LastIndexByte(s.Source, ':'); i >= 0 {
		return s.Source[:i]
	}
	return s.Source
}
