package main

import (
	"io"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

// asking returns an app at a terminal, with the given input.
func asking(t *testing.T, typed string) (*app, *strings.Builder) {
	t.Helper()
	var said strings.Builder
	a := newApp(t.Context(), strings.NewReader(typed), io.Discard, &said)
	a.tty.in, a.tty.err = true, true
	return a, &said
}

func TestInputIsAsked(t *testing.T) {
	choice := config.Input{ID: "region", Type: "pickString", Description: "Region", Options: []string{"eu", "us"}, Default: "eu"}
	tests := []struct {
		name, typed string
		in          config.Input
		want        string
		said        []string
	}{
		{"text", "hello\n", config.Input{ID: "word", Description: "A word"}, "hello", []string{"A word: "}},
		{"no description", "x\n", config.Input{ID: "word"}, "x", []string{"word: "}},
		{"empty is asked again", "\nx\n", config.Input{ID: "word"}, "x", []string{"an answer is required"}},
		{"default", "\n", config.Input{ID: "word", Default: "d"}, "d", []string{"word [d]: "}},
		{"default of a password", "\n", config.Input{ID: "word", Default: "sekrit", Password: true}, "sekrit", []string{"word [Enter: the default] (hidden): "}},
		{"choice by number", "2\n", choice, "us", []string{"   1) eu", "   2) us"}},
		{"choice by name", "eu\n", choice, "eu", nil},
		{"no choice", "3\nus\n", choice, "us", []string{"not one of the choices"}},
		{"text that a terminal would obey", "x\n", config.Input{ID: "word", Description: "a\x1b[2Jb"}, "x", []string{"a␛[2Jb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, said := asking(t, tt.typed)
			if got, err := a.answers.Answer(config.Server{}, tt.in); err != nil || got != tt.want {
				t.Errorf("input = %q, %v, want %q", got, err, tt.want)
			}
			for _, want := range tt.said {
				if !strings.Contains(said.String(), want) {
					t.Errorf("said %q, want %q in it", said, want)
				}
			}
			if tt.in.Password && strings.Contains(said.String(), "sekrit") {
				t.Errorf("said %q, which shows the password", said)
			}
		})
	}
}

// Trap 36: a question names the server that needs the answer.
func TestInputNamesTheServer(t *testing.T) {
	a, said := asking(t, "one\n")
	a.answers.Answer(config.Server{Name: "tracker"}, config.Input{ID: "word"})
	if want := "tracker needs:\nword: "; !strings.HasPrefix(said.String(), want) {
		t.Errorf("said %q, want it to begin with %q", said, want)
	}
}

func TestInputIsAskedOnce(t *testing.T) {
	a, _ := asking(t, "one\ntwo\n")
	in := config.Input{ID: "word"}
	for range 2 {
		if got, err := a.answers.Answer(config.Server{}, in); err != nil || got != "one" {
			t.Errorf("input = %q, %v, want the first answer", got, err)
		}
	}
	a, _ = asking(t, "")
	_, first := a.answers.Answer(config.Server{}, in)
	_, again := a.answers.Answer(config.Server{}, in)
	if first == nil || again == nil || !strings.Contains(first.Error(), "PATCHBAY_INPUT_WORD") {
		t.Errorf("input at the end of what is typed = %v and %v, want the variable named", first, again)
	}
}

// LOG-26-008: no line that the program writes contains a password.
func TestInputIsHidden(t *testing.T) {
	t.Setenv("PATCHBAY_INPUT_KEY", "sekrit")
	a, said := asking(t, "")
	if _, err := a.answers.Answer(config.Server{}, config.Input{ID: "key", Password: true}); err != nil {
		t.Fatal(err)
	}
	a.talk.Note("the server said sekrit")
	if got := said.String(); strings.Contains(got, "sekrit") || !strings.Contains(got, "[redacted]") {
		t.Errorf("said %q", got)
	}
}

func TestInputOfTheEnvironment(t *testing.T) {
	t.Setenv("PATCHBAY_INPUT_REGION", "moon")
	a, _ := asking(t, "eu\n")
	if got, err := a.answers.Answer(config.Server{}, config.Input{ID: "region", Type: "pickString", Options: []string{"eu", "us"}}); err == nil {
		t.Errorf("input = %q, want an error: it is none of the options", got)
	}
}
