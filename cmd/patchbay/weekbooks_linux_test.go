package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/audit"
)

// admin makes a request to listen.admin.
func (w *week) admin(method, path string) {
	w.t.Helper()
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/admin/v1`)
	w.r.stderr.await(w.t, at.String())
	req, err := http.NewRequest(method, at.FindString(w.r.stderr.String())+path, strings.NewReader("{}"))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.keys["root"])
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		w.t.Errorf("%s %s: %s %s", method, path, res.Status, body)
	}
}

// goroutines counts the goroutines of up.
func (w *week) goroutines() int {
	w.t.Helper()
	file := filepath.Join(w.dir, "stacks")
	os.Remove(file)
	if err := w.r.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		w.t.Fatal(err)
	}
	var text []byte
	until(w.t, "up has written its stacks", func() bool { text, _ = os.ReadFile(file); return len(text) > 0 })
	return len(regexp.MustCompile(`(?m)^goroutine \d+ `).FindAll(text, -1))
}

// settle waits until up has about as many goroutines as at first.
func (w *week) settle(atFirst int) {
	w.t.Helper()
	n := 0
	until(w.t, fmt.Sprintf("up has about %d goroutines again", atFirst), func() bool { n = w.goroutines(); return n <= atFirst+weekGrowth })
	w.t.Logf("%d goroutines at first, %d at the end", atFirst, n)
}

// weekGrowth is how many more goroutines up may have, such as those of idle connections.
const weekGrowth = 40

// allowed returns the saying that an error of a call matches, and whether there is one.
func (a *attempt) allowed() (saying, bool) {
	absent := reading(false, "", `^(no tool "`+a.tool+`"; see tools/list|no server offers "`+a.tool+`"; names begin with the name of a server)$`)
	all := slices.Concat(a.says, everyDay, a.began.says, a.ended.says)
	if !a.sees(true) {
		all = append(all, absent)
	}
	for _, s := range all {
		if s.match.MatchString(a.text) && (s.tool == "" || regexp.MustCompile(s.tool).MatchString(a.tool)) {
			return s, true
		}
	}
	return saying{}, false
}

// sees reports whether the view of the caller has the tool: all the time, or at some time, of the call.
func (a *attempt) sees(allTime bool) bool {
	always, ever := a.began.has(a.m.team, a.tool)
	alsoAlways, alsoEver := a.ended.has(a.m.team, a.tool)
	if allTime {
		return always && alsoAlways
	}
	return ever || alsoEver
}

// weekStory is what the audit log has about the configuration.
var weekStory = []string{
	"start ", `"+ extra"`, `"~ own"`, `"- extra"`, "disable common by local#", "enable common by apikey#root", `"+ site"`, `"- web"`,
	`changed {"changed":"views"`, `changed {"changed":"views"`, "restart own by local#", "restart own by local#", `changed {"policy"`,
}

// told is what the audit log says about a call.
type told struct {
	begins []*audit.Entry
	ends   []*audit.Entry
}

// books compares what clients have seen with the ledger of the servers, the audit log and the metrics.
func (w *week) books(metrics string, inTime, changed int) {
	t := w.t
	t.Helper()
	done := map[string]deed{}
	for _, d := range deeds(t, w.ledger) {
		if _, twice := done[d.ID]; twice {
			t.Errorf("%s ran twice", d.ID)
		}
		done[d.ID] = d
	}
	log := filepath.Join(w.dir, "audit.jsonl")
	typedRun(t, "", exitOK, "audit", "verify", log, "--key", filepath.Join(w.dir, "audit.key.pub"))
	byTrace, unlisted := map[string]*told{}, map[string]int{}
	var config []string
	rounds := 0
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == audit.Config:
			line := e.Event
			if e.Server != nil {
				line += " " + e.Server.Name
			}
			if e.Principal != nil {
				line += " by " + e.Principal.ID
			}
			config = append(config, line+" "+string(e.Detail))
		case e.Method != "" || e.Trace == "":
		default:
			s := byTrace[e.Trace]
			if s == nil {
				s = new(told)
				byTrace[e.Trace] = s
			}
			switch e.Kind {
			case audit.CallBegin:
				s.begins = append(s.begins, e)
			case audit.CallRetry:
				if e.Tool == "ask" { // a request with answers; of another tool the gateway has tried again, at another replica
					rounds++
				}
			default:
				s.ends = append(s.ends, e)
				unlisted[e.Principal.ID] += e.More
			}
		}
	}
	last := 0
	for _, want := range weekStory { // in this order
		i := slices.IndexFunc(config[last:], func(line string) bool { return strings.Contains(line, want) })
		if i < 0 {
			t.Errorf("the audit log does not tell %s, in its order:\n%s", want, strings.Join(config, "\n"))
			break
		}
		last += i + 1
	}

	callers, teams, sayings := story{}, map[string]story{}, map[string]int{}
	tools := map[string]string{"remember": "note", "remark": "note", "memo": "note"}
	for i, a := range w.attempts {
		name := fmt.Sprintf("%s: %s of %s (%s, %v)", a.began.name, a.tool, a.id, a.m.revision, a.took.Round(1e6))
		d, ran := done[a.id]
		delete(done, a.id)
		s := byTrace[a.trace]
		delete(byTrace, a.trace)
		if s == nil {
			s = new(told)
		}
		if a.outcome != "unauthorized" && i < inTime {
			if teams[a.m.team] == nil {
				teams[a.m.team] = story{}
			}
			callers[a.outcome]++
			teams[a.m.team][a.outcome]++
		}
		if a.took > weekBound {
			t.Errorf("%s took %v", name, a.took)
		}
		if a.m.person == a.began.gone && strings.HasSuffix(a.began.name, "done") && a.outcome != "unauthorized" {
			t.Errorf("%s: after the end of the key: %s, %s", name, a.outcome, a.text)
		}

		// The caller and the server.
		switch a.outcome {
		case "ok":
			if a.text != "did "+a.id || !ran {
				t.Errorf("%s: the answer is %q, and the server has run %+v", name, a.text, d)
			}
			if !a.sees(false) {
				t.Errorf("%s: it is not in the view", name)
			}
		case "tool error":
			if a.text != "no paper for "+a.id || !ran {
				t.Errorf("%s: the tool failed with %q, and the server has run %+v", name, a.text, d)
			}
		case "error":
			what, ok := a.allowed()
			if ok && ran && d.Tool == "ask" && !a.m.revision.Sessions() && !a.sees(true) && !what.ran {
				// The tool was moved between the question and the round with its answer, which is refused as
				// one of an absent tool.
				rounds++
				if len(s.ends) == 0 {
					unlisted["apikey#"+a.m.person]--
				}
				continue
			}
			if !ok {
				t.Errorf("%s: %s", name, a.text)
			} else if ran && !what.ran {
				t.Errorf("%s has run, but its caller is told %q", name, a.text)
			}
			sayings[regexp.MustCompile(`\d+ s$`).ReplaceAllString(strings.ReplaceAll(a.text, a.tool, "TOOL"), "N s")]++
		case "unauthorized":
			if ran && d.Tool == "ask" && !a.m.revision.Sessions() && a.m.person == a.ended.gone && len(s.begins) == 1 {
				rounds++ // the key was revoked between the question and the round with its answer
				continue
			}
			if a.m.person != a.ended.gone || ran || len(s.begins) > 0 {
				t.Errorf("%s: %s; it has run: %v", name, a.text, ran)
			}
			continue
		}

		// The audit log.
		outcome := map[string]string{"ok": "ok", "tool error": "tool error", "error": "error"}[a.outcome]
		switch {
		case len(s.ends) == 0 && len(s.begins) == 0 && a.outcome == "error" && !ran:
			unlisted["apikey#"+a.m.person]--
			continue
		case len(s.ends) != 1 || len(s.begins) > 1 || ran && len(s.begins) != 1:
			t.Errorf("%s: %s, but the audit log has %d begins and %d ends", name, a.outcome, len(s.begins), len(s.ends))
			continue
		}
		end := s.ends[0]
		if end.Outcome != outcome && (outcome != "error" || end.Outcome != "denied") {
			t.Errorf("%s: its caller has seen %s (%s), and the audit log says %q", name, a.outcome, a.text, end.Outcome)
		}
		for _, e := range append(slices.Clone(s.begins), s.ends...) {
			if e.Principal == nil || e.Principal.ID != "apikey#"+a.m.person || e.Team != a.m.team || e.Client == nil || e.Client.Name != a.m.name || e.Client.Revision != string(a.m.revision) {
				t.Errorf("%s: the audit log has another caller: %s", name, e.Line())
			}
		}
		if ran {
			server := d.Server
			tool, known := tools[a.tool]
			if !known {
				_, tool, _ = strings.Cut(a.tool, "_")
			}
			if server == "web" && strings.HasPrefix(a.tool, "site_") {
				server = "site"
			}
			for _, e := range []*audit.Entry{s.begins[0], end} {
				if e.Server == nil || e.Server.Name != server || e.Tool != tool || d.Tool != tool || !strings.HasPrefix(a.tool, server+"_") && !known {
					t.Errorf("%s: the audit log has another server or tool, and the server has run %+v: %s", name, d, e.Line())
				}
			}
		}
		if n, err := strconv.Atoi(a.id[strings.LastIndex(a.id, "-")+1:]); err == nil && n > changed && ran && d.Server == "own" && !strings.HasPrefix(d.Form, "form ") {
			t.Errorf("%s: after the change of its server it has run at the old one", name)
		}
	}
	for id, d := range done {
		t.Errorf("nobody has called %s: %+v", id, d)
	}
	for trace, s := range byTrace {
		t.Errorf("nobody has made the call %s: %+v", trace, s)
	}
	for who, n := range unlisted {
		if n != 0 {
			t.Errorf("%s: refused calls without a line are %d fewer than the log counts", who, n)
		}
	}

	// The metrics.
	requests := callers.told()
	requests["ok"] += rounds // the answer to the one before was a question
	if got := metricStory(t, metrics); !maps.Equal(got.told(), requests) {
		t.Errorf("the metrics tell %v, and the callers %v, with %d rounds of questions", got, callers, rounds)
	}
	byTeam := map[string]story{}
	for _, found := range regexp.MustCompile(`patchbay_team_calls_total\{outcome="(\w+)",team="(\w+)"\} (\d+)`).FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(found[3])
		if err != nil {
			t.Fatal(err)
		}
		if byTeam[found[2]] == nil {
			byTeam[found[2]] = story{}
		}
		switch found[1] {
		case "ok":
			byTeam[found[2]]["ok"] += n
		case "tool_error":
			byTeam[found[2]]["tool error"] += n
		default:
			byTeam[found[2]]["error"] += n
		}
	}
	for team, s := range teams {
		if !maps.Equal(byTeam[team].told(), s.told()) {
			t.Errorf("team %s: the metrics tell %v, and the callers %v", team, byTeam[team], s)
		}
	}
	t.Logf("%d calls: %v, %d rounds of questions", len(w.attempts), callers, rounds)
	for _, text := range slices.Sorted(maps.Keys(sayings)) {
		t.Logf("%5d %s", sayings[text], text)
	}
}
