// Package parallel applies a function to each value of a list in parallel.
package parallel

import "sync"

// Map calls f for each value of list on its own goroutine, waits for all, and returns the results
// in the order of list.
func Map[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() { out[i] = f(a) })
	}
	wg.Wait()
	return out
}
