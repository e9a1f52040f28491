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
	"github.com/patchbay-dev/patchbay/mcp"
)

// A command of a configuration may start this program again, which would read the same
// configuration and start the command again, until the memory is gone. So each command gets in
// its environment which servers have led to it, and no program of its descendants starts one of
// those.

// parentName is the variable that has the lineage: the links of a chain, eldest first, joined by
// commas. A link is the server that was started, and, if that was done by an up that serves a file
// as a whole, "+" and the file; both as hashes.
const parentName = "PATCHBAY_PARENT"

// lineage is which servers have led to this process, and what it adds to that for its children.
type lineage struct {
	chain []string
	file  string // that this process serves as a whole, as [hashOf]; empty: it serves none
}

// origins is the lineage of this process, as it was when it was first asked for.
func (e *Env) origins() *lineage {
	e.origin.Do(func() { e.lineage = newLineage() })
	return e.lineage
}

// Nested tells whether this process was started, by whatever way, by a server that Patchbay has opened.
func (e *Env) Nested() bool { return len(e.origins().chain) > 0 }

// Serves notes that this process serves a configuration as a whole. It is an error if one that has
// led to it does: all that this one could serve is there already.
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

// ExitLoop is the exit code of a program that would serve or start itself. It tells the program that
// started it so.
const ExitLoop = 11

// IsLoop tells whether a server was not opened because that would have this program start itself.
func IsLoop(err error) bool { return errors.Is(err, errOwnParent) || errors.Is(err, errDeep) }

var (
	errOwnParent = errors.New("it has started this program: to start it again would go on without end")
	errDeep      = fmt.Errorf("%d programs have started one another: do their configurations lead in a circle?", hop.Most)
)

// refuse returns an error for a server whose command must not be started from here.
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

// serves notes that this process serves a file as a whole. It is an error if one that has led to
// it does: all that this one could serve is there already.
func (l *lineage) serves(path string) error {
	l.file = fileHash(path)
	for _, link := range l.chain {
		if _, file, _ := strings.Cut(link, "+"); file == l.file {
			return fmt.Errorf("%s is served by the patchbay up that has started this one", path)
		}
	}
	return nil
}

// env is the variable for the command of a server.
func (l *lineage) env(s config.Server) string {
	link := serverHash(s)
	if l.file != "" {
		link += "+" + l.file
	}
	return parentName + "=" + strings.Join(append(l.chain[:len(l.chain):len(l.chain)], link), ",")
}

// serverHash tells a server from others: by its file and name, or by what was typed where.
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

// loopOf says why a server that could not be opened leads back to this program, empty if it does
// not.
func loopOf(err error) string {
	var exit *mcp.ExitError
	var status *mcp.HTTPError
	switch {
	case errors.Is(err, errOwnParent):
		return errOwnParent.Error()
	case errors.Is(err, errDeep):
		return errDeep.Error()
	case errors.As(err, &exit) && exit.State == fmt.Sprintf("exit status %d", ExitLoop):
		return "it is this patchbay up itself, started again"
	case errors.As(err, &status) && status.Status == http.StatusLoopDetected:
		return "it is this patchbay itself, by the address where it listens"
	}
	return ""
}

// fileOf is the file that a server is from.
func fileOf(s config.Server) string {
	if i := strings.LastIndexByte(s.Source, ':'); i >= 0 {
		return s.Source[:i]
	}
	return s.Source
}
