package main

import "testing"

func TestParseBenchmark(t *testing.T) {
	const out = `goos: linux
pkg: example.com/inproc
BenchmarkEchoParallel-2   	   10000	       999 ns/op	     1 B/op	       1 allocs/op
BenchmarkEcho-2   	   67394	      1234.5 ns/op	    7056 B/op	      81 allocs/op
PASS
`
	r, err := parseBenchmark(out, "BenchmarkEcho")
	if err != nil || r["ns/op"] != 1234.5 || r["B/op"] != 7056 || r["allocs/op"] != 81 {
		t.Errorf("parsed %v, %v", r, err)
	}
	for _, bad := range []string{"", "PASS\n", "BenchmarkEcho-2 1 x ns/op\n", "BenchmarkEchoParallel-2 1 1 ns/op\n"} {
		if r, err := parseBenchmark(bad, "BenchmarkEcho"); err == nil {
			t.Errorf("parsed %q: %v", bad, r)
		}
	}
	// With one core there is no "-2".
	if r, err := parseBenchmark("BenchmarkEcho 5 7 ns/op\n", "BenchmarkEcho"); err != nil || r["ns/op"] != 7 {
		t.Errorf("parsed %v, %v", r, err)
	}
}
