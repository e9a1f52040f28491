//go:build linux

package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// A frame is a request in its wire form.
type frame struct {
	bytes []byte
	idAt  int
}

// A wire carries one exchange after the other. It is for one goroutine.
type wire interface {
	prepare(*body) frame
	// exchange sends a frame with a new id and returns the answer to it, valid until the
	// next one.
	exchange(frame) ([]byte, error)
}

// measure makes one call of the tool after the other on each wire, independently, first
// for warm and then for dur. Each wire pauses between two calls.
func measure(p *Process, wires []wire, b *body, check *echoCheck, pause, warm, dur time.Duration) (Sample, error) {
	frames := make([]frame, len(wires))
	times := make([][]time.Duration, len(wires))
	for i, w := range wires {
		frames[i] = w.prepare(b)
		times[i] = make([]time.Duration, 0, 1<<16)
		answer, err := w.exchange(frames[i])
		if err == nil {
			err = check.decode(answer)
		}
		if err != nil {
			return Sample{}, p.explain(err)
		}
	}
	errs := make([]error, len(wires))
	series := func(d time.Duration) error {
		var all sync.WaitGroup
		end := time.Now().Add(d)
		for i, w := range wires {
			all.Go(func() {
				times[i] = times[i][:0]
				for last := time.Now(); last.Before(end); {
					answer, err := w.exchange(frames[i])
					if err == nil {
						err = check.check(answer)
					}
					if err != nil {
						errs[i] = err
						return
					}
					now := time.Now()
					times[i] = append(times[i], now.Sub(last))
					if pause > 0 {
						time.Sleep(pause)
						now = time.Now()
					}
					last = now
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return p.explain(err)
			}
		}
		return nil
	}
	if err := series(warm); err != nil {
		return Sample{}, err
	}
	before := p.CPU()
	err := series(dur)
	used := p.CPU() - before
	if err != nil {
		return Sample{}, err
	}
	var calls []time.Duration
	for _, t := range times {
		calls = append(calls, t...)
	}
	return newSample(calls, used), nil
}

// toolMark is a text that each tool of a list has once.
var toolMark = []byte(`"inputSchema":`)

// lists reads the whole list of tools repeatedly. A call of the sample is a whole list.
func lists(p *Process, w wire, r Revision, tools int, warm, dur time.Duration) (Sample, error) {
	type page struct {
		frame frame
		tools int
	}
	var pages []page
	seen := 0
	for cursor := ""; ; {
		f := w.prepare(r.list(cursor))
		answer, err := w.exchange(f)
		if err != nil {
			return Sample{}, p.explain(err)
		}
		raw, err := result(answer)
		if err != nil {
			return Sample{}, err
		}
		var list struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return Sample{}, fmt.Errorf("list %.200q: %w", raw, err)
		}
		if n := bytes.Count(answer, toolMark); n != len(list.Tools) {
			return Sample{}, fmt.Errorf("counted %d tools of %d", n, len(list.Tools))
		}
		pages = append(pages, page{f, len(list.Tools)})
		seen += len(list.Tools)
		if cursor = list.NextCursor; cursor == "" || seen > tools {
			break
		}
	}
	if seen != tools {
		return Sample{}, fmt.Errorf("listed %d tools, want %d", seen, tools)
	}
	var times []time.Duration
	series := func(d time.Duration) error {
		times = times[:0]
		end := time.Now().Add(d)
		for last := time.Now(); last.Before(end); {
			for _, page := range pages {
				answer, err := w.exchange(page.frame)
				if err != nil {
					return p.explain(err)
				}
				if n := bytes.Count(answer, toolMark); n != page.tools {
					return fmt.Errorf("page of %d tools, want %d", n, page.tools)
				}
			}
			now := time.Now()
			times = append(times, now.Sub(last))
			last = now
		}
		return nil
	}
	if err := series(warm); err != nil {
		return Sample{}, err
	}
	before := p.CPU()
	err := series(dur)
	return newSample(times, p.CPU()-before), err
}
