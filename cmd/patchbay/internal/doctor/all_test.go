package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

func TestRunAllAndPrint(t *testing.T) {
	var exams []*Exam
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		e := &Exam{Server: config.Server{Name: name}}
		e.Fail("config", "faulty", "correct the file")
		exams = append(exams, e)
	}
	var names, lines []string
	RunAll(t.Context(), exams, func(e *Exam) {
		names = append(names, e.Server.Name)
		e.Print(0, func(text, _ string) string { return text }, func(line string) { lines = append(lines, line) })
	})
	if !slices.Equal(names, []string{"a", "b", "c", "d", "e", "f"}) {
		t.Errorf("order %q", names)
	}
	want := "a  \n  failed   config      faulty\n           next        correct the file\n"
	if got := strings.Join(lines, "\n"); !strings.HasPrefix(got, want) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
