package engine

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
)

// Trap 46: of too many notes the newest are kept, in order, and always the newest progress.
func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		name     string
		progress func(i int) bool
		n        int
		newest   int // number of the newest progress, -1 for none
	}{
		{"few", func(int) bool { return true }, 10, 9},
		{"full", func(int) bool { return true }, MaxNotes, MaxNotes - 1},
		{"a flood of progress", func(int) bool { return true }, 3*MaxNotes + 7, 3*MaxNotes + 6},
		{"a flood of messages", func(int) bool { return false }, 2*MaxNotes + 1, -1},
		{"both", func(i int) bool { return i%3 == 0 }, 5*MaxNotes + 1, 5 * MaxNotes / 3 * 3},
		{"progress before a flood", func(i int) bool { return i < 5 }, 4*MaxNotes + 3, 4},
		{"progress first of all", func(i int) bool { return i == 0 }, 2 * MaxNotes, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var q Notes
			for i := range tt.n {
				method := "notifications/message"
				if tt.progress(i) {
					method = "notifications/progress"
				}
				q.Put(Note{method, json.RawMessage(strconv.Itoa(i))})
			}
			list, dropped := q.Take()
			if want := min(tt.n, MaxNotes); len(list) != want || dropped != tt.n-want {
				t.Fatalf("%d notes and %d dropped, want %d of %d", len(list), dropped, want, tt.n)
			}
			var numbers []int
			newest := -1
			for _, n := range list {
				i, err := strconv.Atoi(string(n.Params))
				if err != nil {
					t.Fatal(err)
				}
				if numbers = append(numbers, i); n.Method == "notifications/progress" {
					newest = i
				}
			}
			if !slices.IsSorted(numbers) || numbers[len(numbers)-1] != tt.n-1 {
				t.Errorf("the notes are out of order, or end with %d", numbers[len(numbers)-1])
			}
			if newest != tt.newest {
				t.Errorf("the newest progress is %d, want %d", newest, tt.newest)
			}
			if list, dropped := q.Take(); len(list)+dropped > 0 {
				t.Errorf("%d notes, %d dropped after Take", len(list), dropped)
			}
		})
	}
}
