//go:build linux

package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	interrupt = syscall.SIGINT

	// endTime bounds the end of all processes after any end of the program.
	endTime = 5 * time.Second

	// killWithin is the latest time of the kill, from the program's start.
	killWithin = 1500 * time.Millisecond
)

// Killed is the result of kills.
type Killed struct {
	Times     []time.Duration // until no process was left, of each kill, sorted
	Processes int             // the maximum at the time of a kill
}

// Kill starts the program n times, makes clients disconnect abruptly, and kills it
// by SIGKILL at a random moment. It returns an error if a process is left 5 seconds
// later.
func Kill(ctx context.Context, p Program, n int, seed uint64, each func(i int)) (*Killed, error) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	k := new(Killed)
	for i := range n {
		if each != nil {
			each(i)
		}
		after := time.Duration(rnd.Int64N(int64(killWithin)))
		took, seen, err := p.killOnce(ctx, after, rnd.Uint64())
		k.Processes = max(k.Processes, seen)
		if err != nil {
			return k, fmt.Errorf("kill %d, %v after the start: %w", i+1, after.Round(time.Millisecond), err)
		}
		k.Times = append(k.Times, took)
	}
	slices.Sort(k.Times)
	return k, nil
}

func (p Program) killOnce(ctx context.Context, after time.Duration, seed uint64) (took time.Duration, seen int, err error) {
	r, err := p.start(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer r.stop()
	moment := time.After(after)
	busy, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		select {
		case <-r.listening:
			var none Disconnected
			r.leave(busy, &none, 1<<30, seed)
		case <-busy.Done():
		}
	})
	select {
	case <-moment:
	case <-r.ended:
		return 0, 0, fmt.Errorf("the program ended by itself: %v; it said: %s", r.cmd.ProcessState, &r.said)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	seen = len(marked(r.marker))
	r.cmd.Process.Kill()
	stop()
	took, left := gone(ctx, r.marker, endTime)
	if len(left) > 0 {
		return took, seen, fmt.Errorf("%v later there are still %s", took.Round(time.Millisecond), names(left))
	}
	return took, seen, ctx.Err()
}
