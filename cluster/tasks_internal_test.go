package cluster

import (
	"fmt"
	"testing"
	"time"
)

// A node remembers only its large tasks, of which it has few, and forgets one that gets small.
func TestSmallTasksAreNotCounted(t *testing.T) {
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
		if want := bytes / 100_000; len(s.own) != want || s.bytes != want*bytes {
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
}
