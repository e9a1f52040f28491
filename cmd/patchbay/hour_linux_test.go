package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// hourTime names the variable that sets how long the long form of TestUnattended takes; default: an hour.
const hourTime = "PATCHBAY_TEST_HOUR"

// hour is the test: a provider, and many runs of the program, each as a program of its own.
type hour struct {
	t        *testing.T
	self     string
	model    *hourModel
	url, tls string // of the provider
	root     string // certificate of its authority
	dir      string
	n        atomic.Int64

	mu       sync.Mutex
	happened map[string]int // faults, by name; guarded by mu
}

// oneRun is a run of the program.
type oneRun struct {
	name   string // what it is about
	api    string // a provider
	url    string // of the provider; empty: hour.url
	till   bool   // it has a server that is a process, beside the one over HTTP
	task   func(a *hourAgent, ask func(...hourWish) []string)
	fault  func(n int, aside bool) *hourFault
	think  time.Duration
	window int // tokens, of which the program does not know; 0: unbounded
	flags  []string

	code  int    // wanted exit code
	words string // wanted on standard error
	most  float64
	watch func(pid int, counted string, over <-chan struct{}) // beside the program; nil: not watched
}

var hourAPIs = []string{"openai", "openai-responses", "anthropic", "gemini", "text"}

// short is a task of four requests.
func (h *hour) short(a *hourAgent, ask func(...hourWish) []string) {
	wishes := []hourWish{{"web_price", object{"n": 3}}, {"web_price", object{"n": 4}}}
	for i, told := range ask(wishes...) {
		a.number(ask, wishes[i], told)
	}
	a.deed(ask, "web_post", 10, "")
	a.deed(ask, "web_post", 20, "")
}

// do runs the program and checks what must hold of any run.
func (h *hour) do(r oneRun) {
	id := h.n.Add(1)
	if task := r.task; r.till {
		r.task = func(a *hourAgent, ask func(...hourWish) []string) {
			a.await(ask, "till")
			task(a, ask)
		}
	}
	k := &hourTask{
		name: fmt.Sprintf("run-%d-", id), api: r.api, agent: newHourAgent(r.task), fault: r.fault, think: r.think, window: r.window,
		program: make(chan *os.Process, 1), happened: map[string]int{},
	}
	defer k.agent.stop()
	h.model.put(k)
	defer h.model.drop(k)
	dir := filepath.Join(h.dir, k.name)
	web := httptest.NewServer(hourWeb(dir))
	defer web.Close()
	defer web.CloseClientConnections()
	r.most = cmp.Or(r.most, 1000)
	if err := h.write(r, k, dir, web.URL); err != nil {
		h.t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	patience := "1m"
	if r.till {
		patience = "2s" // its servers hang
	}
	var stdout, stderr lastBytes
	cmd := exec.Command(h.self, append([]string{"run", "Do it.", "-m", "hour", "--config", "mcp.json", "--allow", "*", "--allow-sampling", "*",
		"--timeout", patience, "--max-cost", fmt.Sprint(r.most)}, r.flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), testRun+"=patchbay", hourCount+"="+filepath.Join(dir, "goroutines"), "SSL_CERT_FILE="+h.root,
		"HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		h.t.Error(err)
		return
	}
	k.program <- cmd.Process
	var watching sync.WaitGroup
	over := make(chan struct{})
	if r.watch != nil {
		watching.Go(func() { r.watch(cmd.Process.Pid, filepath.Join(dir, "goroutines"), over) })
	}
	late := time.AfterFunc(long.Or(90*time.Minute, 2*time.Minute), func() { cmd.Process.Signal(syscall.SIGQUIT) })
	cmd.Wait()
	late.Stop()
	close(over)
	watching.Wait()

	k.serving.Lock() // a request that is still served
	defer k.serving.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	wrong := r.check(k, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), recorded(dir))
	if left := remaining(dir); len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("the processes %v are left", left))
	}
	if len(wrong) > 0 {
		var said strings.Builder
		for line := range strings.Lines(stderr.String()) {
			fmt.Fprintf(&said, "%.250s\n", strings.TrimSpace(line))
		}
		h.t.Errorf("run %d, %s over %s: %s\nit took %v; %d requests, faults %v\nstdout: %.500s\nstderr: %s", id, r.name, r.api, strings.Join(wrong, "; "),
			time.Since(began), k.requests, k.happened, stdout.String(), &said)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range k.happened {
		h.happened[name] += n
	}
}

// write writes the configuration of a run.
func (h *hour) write(r oneRun, k *hourTask, dir, web string) error {
	trusted := map[string]any{"trusted": true}
	servers := map[string]any{"web": map[string]any{"url": web, "patchbay": trusted}}
	if r.till {
		servers["till"] = map[string]any{"command": "env", "args": []string{testRun + "=till", h.self, dir}, "patchbay": trusted}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers, "patchbay": map[string]any{"models": map[string]any{"hour": map[string]any{
		"provider": r.api, "name": k.name, "baseUrl": cmp.Or(r.url, h.url) + "/v1", "key": "key-of-the-test", "window": 24_000,
		"price": map[string]any{"input": hourInput * 1e6, "output": hourOutput * 1e6},
	}}}})
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600))
}

// check returns what is wrong with a run, of which the journal has the deeds.
func (r *oneRun) check(k *hourTask, code int, stdout, stderr string, journal map[string]int) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	// The agent repeats calls in doubt, which nobody allows.
	if code != r.code && !(r.code == exitOK && code == exitDenied && r.till) {
		bad("exit code %d, want %d", code, r.code)
	}
	if !strings.Contains(stderr, r.words) {
		bad("standard error is without %q", r.words)
	}
	a := k.agent
	switch code {
	case exitOK, exitDenied:
		if got := strings.TrimSuffix(stdout, "\n"); got != a.answer || got == "" {
			bad("the answer is %q, want %q", got, a.answer)
		}
		for id := range a.done {
			if journal[id] == 0 {
				bad("%s counts as done, and did not happen", id)
			}
		}
		for id := range journal {
			if _, ok := a.done[id]; !ok && !slices.Contains(a.open, id) {
				bad("%s happened, and does not count as done", id)
			}
		}
	case -1: // killed
	default:
		if !regexp.MustCompile(`(?m)^patchbay: (error: |interrupted$)`).MatchString(stderr) {
			bad("no error is reported")
		}
	}
	for id, n := range journal {
		if n > 1 {
			bad("%s happened %d times", id, n)
		}
	}
	if slices.Contains(r.flags, "--max-tokens") && k.usage[0]+k.usage[1] > hourTokens {
		bad("it took %d tokens of %d", k.usage, hourTokens)
	}
	if cost := float64(k.usage[0])*hourInput + float64(k.usage[1])*hourOutput; cost > r.most {
		bad("it cost %.3f of %.3f", cost, r.most)
	}
	return slices.Concat(wrong, k.wrong, a.strange)
}

// lastBytes keeps the end of what is written.
type lastBytes struct{ bytes.Buffer }

func (l *lastBytes) Write(p []byte) (int, error) {
	const most = 64 << 10
	n, err := l.Buffer.Write(p)
	if l.Len() > 2*most {
		l.Next(l.Len() - most)
	}
	return n, err
}

// remaining returns the processes whose environment or command line names a folder. It waits for their end, 20
// seconds at most.
func remaining(dir string) (pids []string) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // there is no event for other processes
		pids = nil
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			for _, file := range []string{"environ", "cmdline"} {
				if data, err := os.ReadFile(filepath.Join("/proc", e.Name(), file)); err == nil && bytes.Contains(data, []byte(dir)) {
					pids = append(pids, e.Name())
					break
				}
			}
		}
		if len(pids) == 0 || time.Now().After(deadline) {
			return pids
		}
	}
}

// at returns the faults of the first requests of a run.
func at(faults ...*hourFault) func(int, bool) *hourFault {
	return func(n int, _ bool) *hourFault {
		if n < len(faults) {
			return faults[n]
		}
		return nil
	}
}

// storm returns a fault for a share of the requests, but for at most so many in a row.
func storm(share float64, most int) func(int, bool) *hourFault {
	row, spoilt := 0, false
	return func(_ int, aside bool) *hourFault {
		f := passing[rand.IntN(len(passing))]
		if rand.Float64() > share || row == most || f.turn != nil && (spoilt || aside) {
			row, spoilt = 0, false
			return nil
		}
		row++
		spoilt = spoilt || f.turn != nil && !f.kept
		return f
	}
}

// Runs against a provider that fails in every way, with servers that crash, hang, ask and flood, end with the
// right answer or a clear report. They keep to their budget, what must happen once does not happen twice, no
// process is left, and a long one takes no more memory at its end.
func TestUnattended(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &hour{t: t, self: self, model: newHourModel(), dir: t.TempDir(), happened: map[string]int{}}
	h.listen()
	lasts := 6 * time.Second
	if long.On() {
		lasts = time.Hour
		if s := os.Getenv(hourTime); s != "" {
			if lasts, err = time.ParseDuration(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	all.Go(func() { h.longRun(end) })
	work := make(chan oneRun)
	for range long.Or(2, 8) {
		all.Go(func() {
			for r := range work {
				h.do(r)
			}
		})
	}
	for round := 0; ; round++ {
		for _, r := range h.round(round) {
			if long.On() && time.Now().After(end) {
				break
			}
			work <- r
		}
		if !long.On() || time.Now().After(end) {
			break
		}
	}
	close(work)
	all.Wait()
	if err := h.model.wire.Err(); err != nil {
		t.Error(err)
	}
	for _, f := range passing {
		if h.happened[f.name] == 0 {
			t.Errorf("the fault %q did not happen", f.name)
		}
	}
	t.Logf("%d runs in %v; requests by fault: %v", h.n.Load(), lasts, h.happened)
}

// round returns runs in which each fault happens.
func (h *hour) round(n int) (list []oneRun) {
	api := func() string { return hourAPIs[(n+len(list))%len(hourAPIs)] }
	add := func(r oneRun) { list = append(list, r) }
	for i := 0; i < len(passing); i += 2 {
		add(oneRun{name: "passing", api: api(), task: h.short, fault: at(passing[i], nil, passing[(i+1)%len(passing)])})
	}
	for i := range lasting {
		f := &lasting[i]
		ended := f.code == exitInterrupted || f.code == -1 // by a signal: a server could be left
		add(oneRun{name: f.name, api: api(), till: ended, task: h.short, fault: func(int, bool) *hourFault { return &f.hourFault }, flags: f.flags, code: f.code, words: f.words})
	}
	for range 3 {
		add(oneRun{name: "storm", api: api(), task: h.short, fault: storm(0.5, 3)})
	}
	add(oneRun{name: "TLS", api: api(), url: h.tls, task: h.short, fault: storm(0.3, 1)})
	add(oneRun{name: "budget", api: api(), task: func(_ *hourAgent, ask func(...hourWish) []string) {
		for i := 0; ; i++ {
			ask(hourWish{"web_price", object{"n": i}})
		}
	}, fault: func(n int, _ bool) *hourFault {
		if n%long.Or(4, 2) > 0 {
			return lostAnswers[rand.IntN(len(lostAnswers))] // it is billed all the same
		}
		return nil
	}, code: exitBound, words: "not done within", most: long.Or(12.0, 3)})
	if long.On() && n%5 == 0 {
		for _, f := range minutes {
			add(oneRun{name: f.name, api: api(), task: h.short, fault: at(f)})
		}
		add(oneRun{name: "huge", api: api(), task: h.short, fault: at(huge), code: exitModel, words: "the answer is longer than"})
	}
	addr, err := freeport.Addr()
	if err != nil {
		h.t.Fatal(err)
	}
	add(oneRun{name: "refused", api: api(), url: "http://" + addr, task: h.short, fault: at(), flags: []string{"--max-time", "2s"}, code: exitBound, words: "not done in 2s"})
	for _, hows := range [][]string{
		{"crash-before", "crash-after"}, {"hang"}, {"flood", "ask", "sample"},
		{"web-500-after", "web-502-after", "web-503-before", "web-429-before"}, {"web-lost-after", "web-lost-before", "web-page-before"}, {"web-hang-after"},
	} {
		add(oneRun{name: "servers: " + strings.Join(hows, ", "), api: api(), till: true, fault: storm(0.1, 3), task: func(a *hourAgent, ask func(...hourWish) []string) {
			for i, how := range hows {
				a.deed(ask, hourTool(how), i+1, how)
			}
			for i, how := range []string{"crash", "large"} {
				w := hourWish{"till_price", object{"n": i, "how": how}}
				a.number(ask, w, ask(w)[0])
			}
		}})
	}
	return list
}

// hourTool returns the tool that can fail in a way.
func hourTool(how string) string {
	if strings.HasPrefix(how, "web-") {
		return "web_post"
	}
	return "till_post"
}

// listen starts the provider, with and without TLS. With TLS each third connection is reset.
func (h *hour) listen() {
	t := h.t
	plain := httptest.NewServer(h.model)
	t.Cleanup(plain.Close)
	t.Cleanup(plain.CloseClientConnections)
	h.url = plain.URL
	secure := httptest.NewUnstartedServer(h.model)
	secure.Listener = &resetting{Listener: secure.Listener}
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(secure.CloseClientConnections)
	h.tls, h.root = secure.URL, filepath.Join(h.dir, "root.pem")
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(h.root, root, 0o600); err != nil {
		t.Fatal(err)
	}
}

// resetting resets each third connection.
type resetting struct {
	net.Listener
	n int
}

func (l *resetting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if l.n++; err != nil || l.n%3 != 1 {
			return c, err
		}
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

// longRun is one run until the end of the test.
func (h *hour) longRun(end time.Time) {
	t := h.t
	began := time.Now()
	var memory []int // MB, each second
	var goroutines []int
	h.do(oneRun{
		name: "long", api: hourAPIs[rand.IntN(len(hourAPIs))], till: true, think: long.Or(time.Second, 20*time.Millisecond), fault: storm(0.25, 3), window: 12_000,
		flags: []string{"--max-steps", "1000000"}, most: 1e9,
		task: func(a *hourAgent, ask func(...hourWish) []string) {
			hows := []string{"crash-before", "crash-after", "hang", "flood", "ask", "sample", "web-500-after", "web-502-after", "web-503-before", "web-429-before", "web-lost-after", "web-lost-before", "web-hang-after", "web-page-before"}
			for i := 0; time.Now().Before(end); i++ {
				how := ""
				if i%20 == 5 {
					how = fmt.Sprintf("%s %d", hows[i/20%len(hows)], i)
				}
				a.deed(ask, hourTool(how), 1, how)
				wishes := []hourWish{{"till_price", object{"n": i}}, {"web_price", object{"n": i}}}
				for j, told := range ask(wishes...) {
					a.number(ask, wishes[j], told)
				}
			}
		},
		watch: func(pid int, counted string, over <-chan struct{}) {
			tick := time.NewTicker(min(time.Second, time.Until(end)/50))
			defer tick.Stop()
			for {
				select {
				case <-over:
					return
				case <-tick.C:
				}
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
					var kB int
					if m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(data); m != nil {
						fmt.Sscan(string(m[1]), &kB)
						memory = append(memory, kB>>10)
					}
				}
				if len(memory)%10 == 0 && syscall.Kill(pid, syscall.SIGUSR2) == nil {
					if text, err := os.ReadFile(counted); err == nil { // what the signal before has led to
						var n int
						fmt.Sscan(string(text), &n)
						goroutines = append(goroutines, n)
					}
				}
			}
		},
	})
	tenth := len(memory) / 10
	if tenth == 0 || len(goroutines) < 2 {
		t.Errorf("the long run ended after %v", time.Since(began))
		return
	}
	first, last := median(memory[:tenth]), median(memory[len(memory)-tenth:])
	var tenths []int
	for i := range 10 {
		tenths = append(tenths, median(memory[i*tenth:(i+1)*tenth]))
	}
	t.Logf("the long run: %v; MB in each tenth %v, at most %d; goroutines %v", time.Since(began).Round(time.Second), tenths, slices.Max(memory), goroutines)
	if long.On() && last > first+10 {
		t.Errorf("its memory grew from %d to %d MB", first, last)
	}
	if most := slices.Max(goroutines[len(goroutines)/2:]); most > goroutines[0]+40 {
		t.Errorf("its goroutines grew from %d to %d", goroutines[0], most)
	}
}

func median(list []int) int {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
