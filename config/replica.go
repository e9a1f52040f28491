package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Breaker says when a gateway stops calls to a server that fails. The zero value is not set.
type Breaker struct {
	On, Off  bool          // as the file says; neither: the gateway decides
	Failures int           // this many failures
	Calls    int           // among this many last calls open it
	Window   time.Duration // older calls do not count
	For      time.Duration // time until the server is probed; 0: not set
}

const (
	breakerForm = `write {"open": "50% of 20 in 30s", "for": "15s"}, true or false`
	openForm    = `write "50% of 20 in 30s": when half of the last 20 calls within 30 seconds have failed`
)

// breaker reads the setting of the same name.
func (l *loader) breaker(n *node, s *Server) {
	switch n.kind {
	case 't':
		s.Breaker = Breaker{On: true}
		return
	case 'f':
		s.Breaker = Breaker{Off: true}
		return
	case '{':
	default:
		l.fail(n.pos, `"breaker" is not an object, true or false`, breakerForm)
		return
	}
	b := Breaker{On: true}
	seen := make(map[string]int)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "member"):
		case m.name == "open":
			if !b.open(m.value.text) || m.value.kind != '"' {
				l.fail(m.value.pos, `"open" does not say when the breaker opens`, openForm)
			}
		case m.name == "for":
			if b.For = l.duration("for", m.value); b.For < 0 {
				l.fail(m.value.pos, `"for" is "never"`, `write how long the breaker stays open before the server is probed, such as "15s"`)
			}
		default:
			fix := `write "open" or "for"`
			if near := misspelt(m.name, []string{"open", "for"}); near != "" {
				fix = "did you mean " + quote(near) + "?"
			}
			l.warn(m.pos, "the member "+quote(m.name)+" of \"breaker\" is not read", fix)
		}
	}
	s.Breaker = b
}

// open reads a rule such as "50% of 20 in 30s" or "10 of 20 in 30s".
func (b *Breaker) open(text string) bool {
	words := strings.Fields(text)
	if len(words) != 5 || words[1] != "of" || words[3] != "in" {
		return false
	}
	share, percent := strings.CutSuffix(words[0], "%")
	failures, err := strconv.Atoi(share)
	calls, err2 := strconv.Atoi(words[2])
	window, err3 := time.ParseDuration(words[4])
	if err != nil || err2 != nil || err3 != nil || calls < 1 || calls > 10_000 || window <= 0 || failures < 1 {
		return false
	}
	if percent {
		if failures > 100 {
			return false
		}
		failures = (failures*calls + 99) / 100
	}
	b.Failures, b.Calls, b.Window = failures, calls, window
	return failures <= calls
}

// replicas reads the setting of the same name.
func (l *loader) replicas(n *node, s *Server) {
	if s.URL == "" {
		l.fail(n.pos, `"replicas" is for a server with a "url"`, `remove it; commands that replace each other are servers with the same "group"`)
		return
	}
	if n.kind != '[' {
		l.fail(n.pos, `"replicas" is not a list`, `write ["https://other.example/mcp"]`)
		return
	}
	s.Replicas = nil
	seen := map[string]bool{s.URL: true}
	for _, item := range n.items {
		if item.kind != '"' {
			l.fail(item.pos, `an element of "replicas" is not a URL`, "put it in quotes")
			continue
		}
		pieces, wrong := l.expander.expand(item.text)
		value := Value{pieces: pieces}
		if wrong != nil {
			l.fail(item.pos, wrong.text, wrong.fix)
			continue
		}
		if value.unresolved() {
			l.fail(item.pos, `"replicas" has an input in it`, "write the address")
			continue
		}
		address := value.Text()
		if problem, fix := checkServerURL(address); problem != "" {
			l.fail(item.pos, strings.Replace(problem, `"url"`, fmt.Sprintf("the replica %s", quote(address)), 1), fix)
			continue
		}
		if seen[address] {
			l.fail(item.pos, "the replica "+quote(address)+" is given twice", "remove one of them")
			continue
		}
		seen[address] = true
		s.Replicas = append(s.Replicas, address)
	}
}
