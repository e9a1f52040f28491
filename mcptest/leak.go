package mcptest

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the time that a goroutine may take to end after its test.
const patience = 20 * time.Second

// LeakCheck fails the test if goroutines that started after the call are still running after the
// test and its Cleanup functions, and reports their stacks. Call it first, and not in a parallel
// test.
func LeakCheck(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		if left := leaks(before); len(left) > 0 {
			t.Errorf("%d goroutines were left behind:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// Main runs the tests of a package and then fails if goroutines are left. It is for
// TestMain:
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
func Main(m *testing.M) {
	before := goroutines()
	code := m.Run()
	if code == 0 {
		if left := leaks(before); len(left) > 0 {
			os.Stderr.WriteString("goroutines were left behind:\n\n" + strings.Join(left, "\n\n") + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// leaks returns the stacks of the goroutines that are not in before and do not end.
func leaks(before map[string]string) []string {
	for wait := time.Millisecond; ; wait *= 2 {
		var left []string
		for id, stack := range goroutines() {
			if _, ok := before[id]; !ok && !harmless.MatchString(stack) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || wait > patience/2 {
			slices.Sort(left)
			return left
		}
		time.Sleep(wait) // the end of a goroutine must be polled
	}
}

// harmless matches goroutines of the test framework and the runtime.
var harmless = regexp.MustCompile(`testing\.\(\*[TBFM]\)\.|testing\.tRunner|testing\.runFuzzing|testing\.\(\*testContext\)|` +
	`os/signal\.signal_recv|os/signal\.loop|runtime\.ensureSigM|runtime/trace|` +
	`internal/synctest|created by runtime`)

var goroutineID = regexp.MustCompile(`^goroutine (\d+) `)

// goroutines returns the stacks of all goroutines by their ids.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if m := goroutineID.FindStringSubmatch(stack); m != nil {
			all[m[1]] = stack
		}
	}
	return all
}
