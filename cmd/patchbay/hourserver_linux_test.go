package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The servers of TestUnattended write each deed to a journal, to which several processes append one line
// for each. The agent says how a call is to fail, and it fails so once.

// hourCount names the file for the number of goroutines of a run.
const hourCount = "PATCHBAY_TEST_GOROUTINES"

// init makes the test binary a server, and makes a run write its number of goroutines on SIGUSR2. Its stacks would
// take megabytes, of which the test measures the memory.
func init() {
	switch file := os.Getenv(hourCount); {
	case os.Getenv(testRun) == "till":
		fmt.Fprintln(os.Stderr, "till: open")
		if err := hourServer("till", os.Args[1]).ServeStdio(context.Background()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case file != "":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR2)
		go func() { // ends with the process
			for range asked {
				if os.WriteFile(file+"~", fmt.Append(nil, runtime.NumGoroutine()), 0o600) == nil {
					os.Rename(file+"~", file)
				}
			}
		}()
	}
}

// once reports whether it is called for the first time with a name, in all processes.
func once(dir, name string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "once-"+name), os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil && f.Close() == nil
}

// journalDeed adds a line to the journal, with one write.
func journalDeed(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// recorded returns the deeds of the journal: how often each happened.
func recorded(dir string) map[string]int {
	data, _ := os.ReadFile(filepath.Join(dir, "journal")) // there may be none
	n := map[string]int{}
	for _, line := range strings.Fields(string(data)) {
		n[line]++
	}
	return n
}

// hourServer makes a server.
func hourServer(name, dir string) *mcp.Server {
	s := &mcp.Server{Name: name, Version: "1"}
	fails := func(how string) bool { return how != "" && once(dir, name+how) }
	type deed struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
		How    string `json:"how,omitempty"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "post", Description: "Posts an amount."}, func(ctx context.Context, d deed) (string, error) {
		kind, _, _ := strings.Cut(d.How, " ")
		fail := kind != "ask" && kind != "sample" && fails(d.How)
		switch {
		case fail && kind == "crash-before":
			os.Exit(2)
		case kind == "ask": // the function may be run again with the answer
			type card struct {
				Number string `json:"number"`
			}
			if _, err := mcp.Elicit[card](ctx, "Your card?"); !errors.Is(err, mcp.ErrDeclined) {
				return "", err
			}
		case kind == "sample":
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 10, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(hourSample + " " + d.ID)}}}})
			if err != nil {
				return "", err
			}
			if res.Text() != "yes" {
				return "", fmt.Errorf("the model says %q", res.Text())
			}
		}
		if err := journalDeed(dir, d.ID); err != nil {
			return "", err
		}
		if !fail {
			return "did " + d.ID, nil
		}
		switch kind {
		case "crash-after":
			os.Exit(2)
		case "hang":
			select {} // whatever the client says
		case "flood":
			for i := range 300 {
				fmt.Fprintln(os.Stderr, "till: I did", i, strings.Repeat("very much ", 20))
				mcp.Progress(ctx, float64(i), 300, "working")
			}
		}
		return "did " + d.ID, nil
	})
	type look struct {
		N   int    `json:"n"`
		How string `json:"how,omitempty"`
		Try int    `json:"try,omitempty"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "price", Description: "Tells a price.", Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)}}, func(_ context.Context, in look) (string, error) {
		if fails(in.How) {
			switch kind, _, _ := strings.Cut(in.How, " "); kind {
			case "crash":
				os.Exit(2)
			case "hang":
				select {}
			case "large":
				return strings.Repeat("0123456789abcde\n", 1<<16), nil
			}
		}
		return fmt.Sprint(in.N), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "seen", Description: "Tells whether it was posted.", Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)}}, func(_ context.Context, in struct {
		ID  string `json:"id"`
		Try int    `json:"try"`
	}) (string, error) {
		if recorded(dir)[in.ID] > 0 {
			return "yes", nil
		}
		return "no", nil
	})
	return s
}

// hourWeb serves a server over HTTP, which also fails between the wire and the server.
func hourWeb(dir string) http.Handler {
	s := hourServer("web", dir)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, how, failing := bytes.Cut(body, []byte(`"how":"web-`))
		how, _, _ = bytes.Cut(how, []byte(`"`))
		if !failing || !once(dir, string(how)) {
			s.ServeHTTP(w, r)
			return
		}
		kind, _, _ := strings.Cut(string(how), " ")
		if strings.HasSuffix(kind, "-after") {
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
		switch kind {
		case "500-after":
			w.WriteHeader(500)
		case "502-after":
			w.WriteHeader(502)
		case "503-before":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		case "429-before":
			w.WriteHeader(429)
		case "lost-after", "lost-before":
			reset(w)
		case "hang-after":
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		case "page-before":
			page(200)(nil, w, r)
		}
	})
}
