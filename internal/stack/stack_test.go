package stack

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
)

// Goroutines that call Grow have large stacks afterwards, and others have not.
func TestGrow(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector halves them
	const count = 500
	each := func(begin func()) int64 {
		var before, after runtime.MemStats
		var begun sync.WaitGroup
		end := make(chan bool)
		defer close(end)
		runtime.ReadMemStats(&before)
		begun.Add(count)
		for range count {
			go func() {
				begin()
				begun.Done()
				<-end
			}()
		}
		begun.Wait()
		runtime.ReadMemStats(&after)
		return (int64(after.StackInuse) - int64(before.StackInuse)) / count
	}
	if bytes := each(func() {}); bytes >= 16<<10 {
		t.Errorf("a goroutine has a stack of %d bytes without it", bytes)
	}
	if bytes := each(Grow); bytes < 24<<10 {
		t.Errorf("a goroutine has a stack of %d bytes", bytes)
	}
}
