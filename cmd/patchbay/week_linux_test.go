package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The deployment of the week, without its views.
const weekGateway = `servers: mcp.json
listen: {http: 127.0.0.1:0, metrics: 127.0.0.1:0, admin: 127.0.0.1:0}
auth: [apikeys:keys.jsonl]
policy: rules.yaml
limits: ["tool:web_note=5/h", "tool:site_note=5/h"]
teams: {from: principal.roles, members: {dev: [dev], ops: [ops], sales: [sales]}}
audit: {file: audit.jsonl, key: audit.key, checkpoint: 1s}
record: {dir: frames, bytes: 64MiB, age: 1d}
`

// weekView writes a view of a team.
func weekView(team, rest string) string {
	return fmt.Sprintf("  %s: {for: '%q in principal.roles', %s}\n", team, team, rest)
}

// without returns lists in which a team does not have some tools.
func (l lists) without(team string, tools ...string) lists {
	return l.with(team, tools, nil)
}

// with returns lists in which a team has other tools in the place of some.
func (l lists) with(team string, old, tools []string) lists {
	out := lists{}
	for name, list := range l {
		out[name] = slices.Clone(list)
	}
	out[team] = slices.DeleteFunc(out[team], func(name string) bool { return slices.Contains(old, name) })
	out[team] = append(out[team], tools...)
	slices.Sort(out[team])
	return out
}

// Three teams use seven servers of several revisions through one up for a week. Servers crash, are
// changed, disabled, renamed and restarted, tools are moved between views, files are broken and mended,
// the policy changes and a key is revoked, while twelve clients call all the time. Each call is answered,
// or fails in words that say whether the tool may have run; no call runs twice; each client lists exactly
// its view and is told of its changes; and the callers, the servers, the audit log and the metrics tell
// the same story.
func TestTeamsWeek(t *testing.T) {
	runtimeFolder(t)
	w := &week{t: t, dir: t.TempDir(), keys: map[string]string{}, over: make(chan struct{})}
	w.ledger = filepath.Join(w.dir, "ledger")
	t.Setenv(weekStacks, filepath.Join(w.dir, "stacks"))

	// The servers.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := func(name, form string, revision mcp.Revision, settings map[string]any) map[string]any {
		return map[string]any{"command": "env", "args": []string{testRun + "=week", self, name, form, w.ledger, string(revision)}, "patchbay": settings}
	}
	url := weekWeb(t, weekServer("web", "one", w.ledger, mcp.V2025_06_18))
	servers := map[string]any{
		"common": server("common", "one", mcp.V2025_06_18, map[string]any{"share": "shared"}),
		"own":    server("own", "one", mcp.V2025_11_25, map[string]any{"share": "principal"}),
		"p1":     server("pair", "first", mcp.V2026_07_28, map[string]any{"group": "pair"}),
		"p2":     server("pair", "second", mcp.V2026_07_28, map[string]any{"group": "pair"}),
		"single": server("single", "one", mcp.V2025_11_25, map[string]any{"share": "exclusive", "queue": "20ms", "idle": "5s"}),
		"old":    server("old", "one", mcp.V2024_11_05, map[string]any{}),
		"web":    map[string]any{"url": url},
	}
	file := func() { writeConfig(t, filepath.Join(w.dir, "mcp.json"), servers) }
	file()

	// The teams.
	now := lists{
		"dev":   {"common_work", "own_note", "own_work", "pair_note", "pair_work", "remember"},
		"ops":   {"old_ask", "old_work", "pair_work", "remark", "single_work"},
		"sales": {"common_note", "common_work", "own_work", "web_fail", "web_note", "web_work"},
	}
	plans := lists{
		"dev":   {"common_work", "remember", "memo", "own_work", "own_note", "pair_work", "pair_note", "extra_work", "extra_note", "web_work", "nothing_here"},
		"ops":   {"pair_work", "remark", "memo", "single_work", "old_ask", "old_work", "common_work", "pair_note"},
		"sales": {"web_work", "web_note", "web_fail", "site_work", "site_note", "site_fail", "common_work", "common_note", "own_work", "old_ask"},
	}
	dev := weekView("dev", `tools: [common_work, common_note, own_work, own_note, pair_work, pair_note, "extra_*"], rename: {common_note: remember}`)
	ops := weekView("ops", `tools: [pair_work, pair_note, single_work, old_work, old_ask], rename: {pair_note: remark}`)
	sales := weekView("sales", `tools: ["web_*", "site_*", common_work, common_note, own_work]`)
	gateway := func() { w.write("gateway.yaml", weekGateway+"views:\n"+dev+ops+sales) }
	gateway()
	rules := "default: allow\nrules:\n  - {name: nobody asks the web, when: 'name == \"ask\" && server in [\"web\", \"site\"]', effect: deny}\n"
	w.write("rules.yaml", rules)
	var entries []string
	for person, role := range map[string]string{"ada": "dev", "alan": "dev", "bea": "ops", "bob": "ops", "carl": "sales", "cleo": "sales", "root": "admin"} {
		key, entry := auth.NewAPIKey(person)
		entry.Roles = []string{role}
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[person] = key
		entries = append(entries, string(line))
	}
	w.write("keys.jsonl", strings.Join(entries, "\n")+"\n")

	w.r = beginUp(t, "up", "--gateway", filepath.Join(w.dir, "gateway.yaml"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("up printed\n%s\n%s", w.r.banner, w.r.stderr)
		}
	})
	w.r.url = regexp.MustCompile(`^http://[^/]+/mcp`).FindString(w.r.url)
	w.now.Store(&stage{name: "Mon", lists: []lists{now}})
	atFirst := w.goroutines()
	revisions := mcp.Revisions()
	for _, team := range []string{"dev", "ops", "sales"} {
		for _, person := range map[string][]string{"dev": {"ada", "alan"}, "ops": {"bea", "bob"}, "sales": {"carl", "cleo"}}[team] {
			for window := range 2 {
				m := &member{name: fmt.Sprint(person, window+1), person: person, team: team, revision: revisions[len(w.crew)%len(revisions)], plan: plans[team]}
				w.dial(m)
				w.crew = append(w.crew, m)
			}
		}
	}
	driver := func(person, team string) *member {
		m := &member{name: person + "3", person: person, team: team, revision: mcp.V2025_11_25}
		w.dial(m)
		return m
	}
	ada, cleo := driver("ada", "dev"), driver("cleo", "sales")
	watching, leave := context.WithCancel(context.Background())
	var subscribed sync.WaitGroup
	stop := sync.OnceFunc(func() { close(w.over); leave(); w.working.Wait() })
	t.Cleanup(stop)
	for _, m := range w.crew {
		subscribed.Add(1)
		w.working.Go(func() { w.watch(watching, m, &subscribed) })
	}
	subscribed.Wait()
	for _, m := range w.crew {
		w.working.Go(func() { w.work(m) })
	}
	w.round()

	kill := func(h *errandOut) {
		t.Helper()
		if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if a := <-h.done; a.outcome != "error" {
			t.Errorf("the call at a server that is killed: %s, %s", a.outcome, a.text)
		}
	}
	finish := func(h *errandOut) {
		t.Helper()
		if a := w.end(h); a.outcome != "ok" {
			t.Errorf("a call that may finish: %s, %s", a.outcome, a.text)
		}
	}
	changed := 0 // the first call to the changed server
	for n := range long.Or(3, 1) {
		form := fmt.Sprint("form ", n)

		// Monday: a server is killed in mid-call.
		h := w.hold(ada, "common_work", lostServer("common")...)
		w.change("Mon: common is killed", now, lostServer("common"), nil, func() { kill(h) })

		// Tuesday: an argument of a server is changed, and a server is added and removed.
		h = w.hold(ada, "own_work")
		servers["own"] = server("own", form, mcp.V2025_11_25, map[string]any{"share": "principal"})
		servers["extra"] = server("extra", "one", mcp.V2025_06_18, map[string]any{"tools": map[string]any{"enabled": []string{"work", "note"}}})
		before := now
		now = now.with("dev", nil, []string{"extra_note", "extra_work"})
		back := slices.Concat(lostServer("extra")[1:], lostServer("web")[1:], lostServer("site")[1:]) // known from the week before
		w.change("Tue: own is changed, extra is added", now, slices.Concat(lostServer("own"), stoppedServer("own"), back), nil, func() {
			file()
			w.r.stderr.await(t, `(?m)^patchbay: ~ own$`)
			finish(h)
		})
		changed = int(w.calls.Load())
		delete(servers, "extra")
		now = before
		w.change("Tue: extra is removed", now, stoppedServer("extra"), nil, file)

		// Wednesday: a server is disabled and enabled, and a replica is killed in mid-call.
		disabled := []saying{reading(false, "^(common_|remember$)", `^server "common" is disabled \(patchbay enable common\)$`)}
		before = now
		now = now.without("dev", "common_work", "remember").without("sales", "common_work", "common_note")
		w.change("Wed: common is disabled", now, disabled, disabled, func() { patchbay(t, "disable", "common") })
		now = before
		w.change("Wed: common is enabled", now, nil, nil, func() { w.admin("POST", "/servers/common/enable") })
		h = w.hold(ada, "pair_work", lostServer("pair")...)
		w.change("Wed: a replica is killed", now, lostServer("pair"), nil, func() { kill(h) })

		// Thursday: a server is renamed, and a tool of a view.
		h = w.hold(cleo, "web_work")
		servers["site"] = servers["web"]
		delete(servers, "web")
		before = now
		now = now.with("sales", []string{"web_fail", "web_note", "web_work"}, []string{"site_fail", "site_note", "site_work"})
		w.change("Thu: web is renamed", now, append(stoppedServer("web"), back...), nil, func() { file(); finish(h) })
		ops = strings.Replace(ops, "remark", "memo", 1)
		now = now.with("ops", []string{"remark"}, []string{"memo"})
		w.change("Thu: remark is renamed", now, nil, nil, gateway)

		// Friday: a tool is moved to another team, and a server is restarted twice.
		ops, sales = strings.Replace(ops, ", old_ask]", "]", 1), strings.Replace(sales, "own_work]", "own_work, old_ask]", 1)
		now = now.without("ops", "old_ask").with("sales", nil, []string{"old_ask"})
		w.change("Fri: old_ask is moved", now, nil, nil, gateway)
		h = w.hold(ada, "own_work")
		w.change("Fri: own is restarted with patience", now, lostServer("own"), nil, func() {
			patchbay(t, "restart", "own", "--drain", "20s")
			finish(h)
		})
		h = w.hold(ada, "own_work", lostServer("own")...)
		w.change("Fri: own is restarted now", now, lostServer("own"), nil, func() {
			patchbay(t, "restart", "own", "--drain", "0s")
			if a := <-h.done; !strings.Contains(a.text, "the tool may or may not have run") {
				t.Errorf("the call that is cut off: %s, %s", a.outcome, a.text)
			}
		})

		// Saturday: files are broken and mended, and the policy of a team gets stricter.
		w.change("Sat: files are broken", now, nil, nil, func() {
			w.write("gateway.yaml", weekGateway+"views:\n  dev: {for: principal.rols == 1}\n")
			w.write("mcp.json", `{"mcpServers": {`)
			w.r.stderr.await(t, `(?s)(views\.dev\.for.*){`+fmt.Sprint(n+1)+`}`)
			w.r.stderr.await(t, `(?s)(mcp\.json:1:.*){`+fmt.Sprint(n+1)+`}`)
		})
		if got := patchbay(t, "status"); !strings.Contains(got, "gateway.yaml has faults") || !strings.Contains(got, "mcp.json has faults") {
			t.Errorf("status with broken files is\n%s", got)
		}
		w.change("Sat: files are mended", now, nil, nil, func() {
			gateway()
			file()
			until(t, "status is without faults", func() bool {
				got := patchbay(t, "status")
				return !strings.Contains(got, "has faults")
			})
		})
		before = now
		now = now.without("sales", "common_note")
		w.change("Sat: sales may not note", now, nil, nil, func() {
			w.write("rules.yaml", rules+"  - {name: no notes of sales, when: 'name == \"note\" && server == \"common\" && \"sales\" in principal.roles', effect: deny}\n")
		})
		if n+1 < long.Or(3, 1) { // the next week begins as this one
			w.write("rules.yaml", rules)
			now = before.with("sales", []string{"site_fail", "site_note", "site_work", "old_ask"}, []string{"web_fail", "web_note", "web_work"}).
				with("ops", []string{"memo"}, []string{"remark", "old_ask"})
			servers["web"] = servers["site"]
			delete(servers, "site")
			ops = strings.Replace(strings.Replace(ops, "memo", "remark", 1), "old_work]", "old_work, old_ask]", 1)
			sales = strings.Replace(sales, ", old_ask]", "]", 1)
			w.change("Sun: all is as before", now, append(stoppedServer("site"), back...), nil, func() { gateway(); file() })
		}
	}

	// Sunday: a key is revoked, and at the end the gateway stops in mid-call. The key is that of somebody whose tools
	// ask nothing: the answer to a question would be refused, and its call, which was admitted, would wait for it.
	w.gone = "alan"
	w.change("Sun: the key of alan is revoked", now, nil, nil, func() {
		w.write("keys.jsonl", strings.Join(slices.DeleteFunc(entries, func(line string) bool { return strings.Contains(line, `"alan"`) }), "\n")+"\n")
		until(t, "alan is refused", func() bool {
			req, err := http.NewRequest(http.MethodPost, w.r.url+"/v/dev", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+w.keys["alan"])
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode == http.StatusUnauthorized
		})
	})
	stop()
	for _, m := range w.crew {
		m.session.Close()
	}
	var metrics string
	until(t, "no call is open", func() bool { // a call is counted just after its answer
		metrics = readMetrics(t, w.r.stderr)
		return !regexp.MustCompile(`(?m)^patchbay_calls_open\{.*\} [1-9]`).MatchString(metrics)
	})
	inTime := len(w.attempts)
	patchbay(t, "disable", "own") // ends the processes of persons
	patchbay(t, "disable", "old")
	w.settle(atFirst)
	patchbay(t, "enable", "own")

	finishes, cut := w.hold(ada, "pair_work"), w.hold(ada, "own_work", reading(true, "", `^this gateway is shutting down, so the call of server "own" was cut off; the tool may or may not have run$`))
	family := descendantsOf(w.r.cmd.Process.Pid)
	if err := w.r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	finish(finishes)
	if a := <-cut.done; a.outcome != "error" {
		t.Errorf("the call at the end: %s, %s", a.outcome, a.text)
	}
	if err := w.r.cmd.Wait(); err != nil {
		t.Errorf("up ends with %v", err)
	}
	wantGone(t, family)
	w.books(metrics, inTime, changed)
}
