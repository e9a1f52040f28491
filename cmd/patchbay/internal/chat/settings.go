package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/control"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// setEffort shows how much the model thinks, or sets it.
func (u *ui) setEffort(rest string, _ []string) tea.Cmd {
	if rest == "" {
		now := "by the default of the model"
		if e := string(u.talk.Parameters.Effort); e != "" {
			if now = e; u.leftOut("effort=" + e) {
				now += ", which " + u.model().Info().Name + " does not take, so it is left out"
			}
		}
		u.note("effort: %s; /effort takes %s or default", now, strings.Join(providers.Efforts, ", "))
		return nil
	}
	return u.change("effort=" + rest)
}

// setParameters shows the parameters of the model, or sets one.
func (u *ui) setParameters(rest string, _ []string) tea.Cmd {
	if rest == "" {
		list := u.parameters()
		if len(list) == 0 {
			list = []string{"all parameters are those of the model; /set temperature=0.2 sets one"}
		}
		for _, line := range list {
			u.print(u.look.wrapped(screen.OneLine(line), "  ", "")...)
		}
		u.print("")
		return nil
	}
	return u.change(rest)
}

func (u *ui) change(set string) tea.Cmd {
	if err := control.Set(&u.talk.Parameters, set); err != nil {
		u.note("%v", err)
		return nil
	}
	name, _, _ := strings.Cut(set, "=")
	list := u.talk.Parameters.List()
	if len(list) == 0 {
		u.note("%s is now the default of the model", screen.Cut(name, 60))
	} else {
		u.note("the model is asked with %s", strings.Join(list, ", "))
	}
	return u.keepSettings()
}

// setMode shows the mode of the conversation, or sets it.
func (u *ui) setMode(rest string, _ []string) tea.Cmd {
	if rest == "" {
		mode, _ := host.ParseMode(string(u.talk.Mode))
		u.note("mode: %s; /mode takes ask or read-only", mode)
		return nil
	}
	mode, err := host.ParseMode(rest)
	if err != nil {
		u.note("%v", err)
		return nil
	}
	u.talk.Mode = mode
	if mode == host.ModeReadOnly {
		u.note("read-only: only tools that declare themselves read-only are called, with the approvals that they need")
	} else {
		u.note("mode: %s", mode)
	}
	return u.keepSettings()
}

// keepSettings stores the settings of the conversation.
func (u *ui) keepSettings() tea.Cmd {
	t := u.talk
	return u.briefly(func(ctx context.Context) func(*ui) {
		if err := t.Save(ctx); err != nil && !errors.Is(err, host.ErrBusy) { // a turn stores them at its end
			return func(u *ui) { u.note("%v", err) }
		}
		return nil
	})
}

// mode returns the mode of the conversation for the last line; empty: it is the default.
func (u *ui) mode() string {
	if u.talk.Mode == host.ModeAsk {
		return ""
	}
	return string(u.talk.Mode)
}

// settings returns the parameters that differ from the default, for the last line.
func (u *ui) settings() (list []string) {
	set := false
	for _, p := range u.talk.Parameters.List() {
		effort, is := strings.CutPrefix(p, "effort=")
		switch out := u.leftOut(p); {
		case is && out:
			list = append(list, "effort "+effort+" left out")
		case is:
			list = append(list, "effort "+effort)
		case !out:
			set = true
		}
	}
	if set {
		list = append(list, "/set")
	}
	return list
}

// leftOut reports whether the model gets requests without a parameter, NAME=VALUE, because it takes none.
func (u *ui) leftOut(parameter string) bool {
	m := u.model()
	if m == nil {
		return false
	}
	name, _, _ := strings.Cut(parameter, "=")
	out := m.Info().LeftOut
	return slices.Contains(out, parameter) || slices.Contains(out, name)
}

// parameters returns the parameters that are set, and says which are left out.
func (u *ui) parameters() (list []string) {
	for _, p := range u.talk.Parameters.List() {
		if u.leftOut(p) {
			p += ", left out: " + u.model().Info().Name + " takes none"
		}
		list = append(list, p)
	}
	return list
}

func offerEfforts(_ context.Context, _ *Chat, words []string) []item {
	return offerWords(words, append(slices.Clone(providers.Efforts), "default"))
}

func offerModes(_ context.Context, _ *Chat, words []string) []item {
	return offerWords(words, []string{string(host.ModeAsk), string(host.ModeReadOnly)})
}

func offerWords(words, all []string) (list []item) {
	if len(words) > 0 {
		return nil
	}
	for _, word := range all {
		list = append(list, item{word, ""})
	}
	return list
}

func offerParameters(_ context.Context, _ *Chat, words []string) []item {
	return offerWords(words, []string{"temperature=", "topP=", "maxTokens=", "effort="})
}

// narrower returns the narrower one of two modes.
func narrower(a, b host.Mode) host.Mode {
	if a == "" || a == host.ModeAsk {
		return b
	}
	return a
}
