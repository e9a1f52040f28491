package cluster

import (
	"fmt"
	"testing"
	"time"
)

// The bytes of small tasks do not count, so that a task which has begun can always end; their number does, until they expire.
func TestSmallTasks(t *testing.T) {
	s := &tasks{node: new(Node)}
	for i := range 100 {
		if _, err := s.count(fmt.Sprint(i), ownTask{largeTask, time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, bytes := range []int{100_000, 100} {
		if _, err := s.count("large", ownTask{bytes, time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if want := bytes / 100_000 * bytes; len(s.own) != 101 || s.bytes != want {
			t.Errorf("after one of %d bytes, it remembers %d with %d bytes", bytes, len(s.own), s.bytes)
		}
	}
	for _, bytes := range []int{100_000, 100} { // writes that fail
		before := s.bytes
		undo, err := s.count("large", ownTask{bytes, time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if undo(); s.bytes != before {
			t.Errorf("after a write of %d bytes that failed, it counts %d, not %d", bytes, s.bytes, before)
		}
		if _, err := s.count("large", ownTask{100_000, time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	soon := time.Now().Add(10 * time.Millisecond)
	for i := range maxTaskEntries - len(s.own) {
		if _, err := s.count(fmt.Sprint("more ", i), ownTask{100, soon}); err != nil {
			t.Fatal(err)
		}
	}
	late := time.Now().Add(time.Hour)
	if _, err := s.count("0", ownTask{200, late}); err != nil {
		t.Errorf("a task that ends: %v", err)
	}
	time.Sleep(time.Until(soon))
	if _, err := s.count("one more", ownTask{100, late}); err != nil || len(s.own) > 200 {
		t.Errorf("when others have expired: %v, it remembers %d", err, len(s.own))
	}
}
