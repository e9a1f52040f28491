package audit_test

import (
	"crypto/ed25519"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// cpu returns the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A million lines are verified in 10 s of one core; the short form has fewer.
func TestVerifyIsFast(t *testing.T) {
	long.WithoutRace(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	n := long.Or(1_000_000, 20_000)
	written(t, path, n, audit.Options{Key: key, MaxBytes: 1 << 40})
	start := cpu(t)
	r := verify(t, &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}, path)
	took := cpu(t) - start
	t.Logf("%d lines in %v", r.Lines, took)
	if !r.Whole() || r.Lines < int64(n) {
		t.Errorf("%+v", r)
	}
	if bound := time.Duration(n) * 10 * time.Microsecond; took > bound {
		t.Errorf("%d lines took %v, more than %v", n, took, bound)
	}
}
