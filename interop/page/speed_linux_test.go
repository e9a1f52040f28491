package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/patchbay-dev/patchbay/bench/gateway/setup"
	"github.com/patchbay-dev/patchbay/bench/load"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// milli returns a time in milliseconds.
func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentiles reports the middle and the greatest of times in milliseconds, in place of the mean.
func percentiles(b *testing.B, times []float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(load.Median(times), "p50-ms")
	b.ReportMetric(slices.Max(times), "max-ms")
}

// BenchmarkLink measures the time from the command to the link to the page that it prints.
func BenchmarkLink(b *testing.B) {
	if _, err := program(); err != nil {
		b.Fatal(err)
	}
	var times []float64
	for b.Loop() {
		began := time.Now()
		_, end := running(b, "inspect", "--no-open", "everything")
		times = append(times, milli(time.Since(began)))
		end()
	}
	percentiles(b, times)
}

// BenchmarkReady measures the time from the command to the tools of the server on the page, in a browser that runs already.
func BenchmarkReady(b *testing.B) {
	p := browser.New(b)
	if _, err := program(); err != nil {
		b.Fatal(err)
	}
	var times []float64
	for b.Loop() {
		began := time.Now()
		at, end := running(b, "inspect", "--no-open", "everything")
		p.GoTo(at)
		browser.Eval[bool](p, `new Promise(done => { const look = () => document.querySelector("section.list li") ? done(true) : requestAnimationFrame(look); look() })`)
		times = append(times, milli(time.Since(began)))
		end()
	}
	percentiles(b, times)
}

const (
	callsPerSecond = 2500 // of which each has four frames: a request and an answer on both hops
	wireCalls      = 50_000
)

// BenchmarkWire measures the times between animation frames of the wire screen while calls with 10,000 frames a second go
// through the gateway: as it is opened, which leaves calls out, and with a filter that all of them fit, which leaves none out.
func BenchmarkWire(b *testing.B) {
	for name, filter := range map[string]string{"all": "", "filter": "?q=method:tools/*"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, origin := opened(b, "up", "--http", "127.0.0.1:0", "-s", "everything")
				p.GoTo(origin + "/wire" + filter)
				p.Until(`!!document.querySelector("[data-rows]")`)
				browser.Eval[bool](p, `(() => {
					let last = performance.now();
					window.gaps = [];
					const next = (now) => { gaps.push(now - last); last = now; requestAnimationFrame(next) };
					requestAnimationFrame(next);
					return true;
				})()`)
				began := time.Now()
				call(b, origin, wireCalls)
				took := time.Since(began)
				gaps := browser.Eval[[]float64](p, `gaps`)
				slices.Sort(gaps)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(4*wireCalls/took.Seconds(), "frames/s")
				b.ReportMetric(gaps[len(gaps)*99/100], "p99-gap-ms")
				b.ReportMetric(gaps[len(gaps)-1], "max-gap-ms")
				b.ReportMetric(float64(len(gaps))/took.Seconds(), "drawn/s")
				b.ReportMetric(browser.Eval[float64](p, `Number(document.querySelector("[data-rows]").dataset.rows)`), "rows")
			}
		})
	}
}

// BenchmarkRows opens a recording of 50,000 calls on two hops and scrolls until all of its 100,000 rows are there: it measures
// the elements of the page, and its memory after a collection of garbage.
func BenchmarkRows(b *testing.B) {
	const rows = 100_000
	file := filepath.Join(b.TempDir(), "trace.jsonl")
	var text bytes.Buffer
	for n := 1; n <= rows/2; n++ {
		for _, line := range []string{
			`{"dir":"in","conn":"http-%[1]d","http":{"exchange":%[1]d,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"everything_echo","arguments":{"message":"hello"}}}}`,
			`{"dir":"out","conn":"everything/memory-1","for":{"conn":"http-%[1]d","id":1},"msg":{"jsonrpc":"2.0","id":%[1]d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}}`,
			`{"dir":"in","conn":"everything/memory-1","for":{"conn":"http-%[1]d","id":1},"msg":{"jsonrpc":"2.0","id":%[1]d,"result":{"content":[]}}}`,
			`{"dir":"out","conn":"http-%[1]d","http":{"exchange":%[1]d,"status":200},"msg":{"jsonrpc":"2.0","id":1,"result":{"content":[]}}}`,
		} {
			fmt.Fprintf(&text, line+"\n", n)
		}
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, _ := opened(b, "inspect", "--no-open", file)
		browser.Eval[bool](p, fmt.Sprintf(`new Promise((done) => {
			const box = document.querySelector("[data-rows]");
			const more = () => {
				if (Number(box.dataset.rows) >= %d) return done(true);
				box.scrollTop = box.scrollHeight;
				requestAnimationFrame(more);
			};
			more();
		})`, rows))
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(browser.Eval[float64](p, `document.querySelectorAll("*").length`), "elements")
		p.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return chromedp.Void{}, err
			}
			heap, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
			b.ReportMetric(heap.UsedSize/1e6, "heap-MB")
			return chromedp.Void{}, err
		})
	}
}

// call calls a tool of the gateway n times at an even rate.
func call(b *testing.B, origin string, n int) {
	b.Helper()
	const atOnce = 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	defer client.CloseIdleConnections()
	due := make(chan time.Time, n)
	began := time.Now()
	for i := range n {
		due <- began.Add(time.Duration(i) * time.Second / callsPerSecond)
	}
	close(due)
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for at := range due {
				time.Sleep(time.Until(at))
				if err := echo(client, origin); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// echo calls the tool echo once.
func echo(client *http.Client, origin string) error {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"everything_echo","arguments":{"message":"hello"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest("POST", origin+"/mcp", strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "everything_echo",
	} {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("hello")) {
		return fmt.Errorf("HTTP %d: %s", res.StatusCode, answer)
	}
	return nil
}

// BenchmarkGateway measures the CPU time of the gateway for a call, of one connection and of 50, as bench/gateway does: without
// a page, with a page that nobody has open, with a program that reads what the wire screen reads, and with that screen in a
// browser, which takes cores and caches from the gateway. Each iteration measures all of them, in an order that rotates, and
// the ratios are taken within an iteration.
func BenchmarkGateway(b *testing.B) {
	path, err := program()
	if err != nil {
		b.Fatal(err)
	}
	server := filepath.Join(b.TempDir(), "server")
	build := exec.Command("go", "build", "-o", server, "./bench/target/server")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the server: %v\n%s", err, out)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		b.Setenv(name, b.TempDir())
	}
	p := browser.New(b)
	measure := func(b *testing.B, way string, conns int) float64 {
		o := setup.Options{Program: path, Server: []string{server, "stdio"}, Dir: b.TempDir()}
		if way == "none" {
			o.Args = []string{"--no-page"}
		}
		g, err := setup.Start(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		at := ""
		if way == "read" || way == "open" {
			said, err := exec.Command(path, "page", "--print").CombinedOutput()
			if at = link.FindString(string(said)); err != nil || at == "" {
				b.Fatalf("patchbay page: %v\n%s", err, said)
			}
		}
		switch way {
		case "read":
			defer readWire(b, at, "http://"+g.Addr)()
		case "open":
			p.GoTo(at)
			p.Until(`!!document.querySelector("[data-ready]")`)
			p.GoTo("http://" + g.Addr + "/wire")
			p.Until(`!!document.querySelector("[data-rows]")`)
			defer p.GoTo("about:blank")
		}
		sample, err := g.Echo(g.Tool, load.Text(100), conns, time.Second, time.Second)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := g.End(); err != nil {
			b.Fatal(err)
		}
		return milli(sample.CPUPerCall()) * 1000
	}
	ways := []string{"none", "shut", "read", "open"}
	for name, conns := range map[string]int{"one": 1, "many": 50} {
		b.Run(name, func(b *testing.B) {
			values := map[string][]float64{}
			for round := 0; b.Loop(); round++ {
				now := map[string]float64{}
				for i := range ways {
					way := ways[(i+round)%len(ways)]
					now[way] = measure(b, way, conns)
				}
				values["none-µs"] = append(values["none-µs"], now["none"])
				values["shut/none"] = append(values["shut/none"], now["shut"]/now["none"])
				values["read/none"] = append(values["read/none"], now["read"]/now["none"])
				values["open/none"] = append(values["open/none"], now["open"]/now["none"])
			}
			b.ReportMetric(0, "ns/op")
			for name, v := range values {
				b.ReportMetric(load.Median(v), name)
			}
		})
	}
}

// readWire signs in by a link, and reads the events of the wire screen until the end is called.
func readWire(b *testing.B, at, origin string) (end func()) {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	ctx, cancel := context.WithCancel(b.Context())
	ask := func(method, path, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, origin+path, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Patchbay-Page", "1")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			said, _ := io.ReadAll(res.Body)
			b.Fatalf("%s: %s: %s", path, res.Status, said)
		}
		return res
	}
	_, code, _ := strings.Cut(at, "#in=")
	ask(http.MethodPost, "/ui/in", `{"code":"`+code+`"}`).Body.Close()
	res := ask(http.MethodGet, "/ui/events?want=rows&q=&after=", "")
	first := make([]byte, 1) // it has begun
	if _, err := io.ReadFull(res.Body, first); err != nil {
		b.Fatal(err)
	}
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, res.Body)
		read <- n
	}()
	return func() {
		cancel()
		if n := <-read; n < 100_000 {
			b.Errorf("the wire screen was sent %d bytes", n)
		}
		res.Body.Close()
		client.CloseIdleConnections()
	}
}
