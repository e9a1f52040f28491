package person

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
)

// more asks what else may be called without asking: some calls of the tool, or a class of tools of its server. The
// person sees the tools before they say for how long. The verdict denies if they go back.
func more(ctx context.Context, d *terminal.Dialog, ask *host.Approval) (v host.Verdict, err error) {
	server := screen.OneLine(ask.Server)
	d.Say("  i  " + server + "/" + screen.OneLine(ask.Tool.Name) + ", if a condition on its arguments holds\n")
	if ask.ReadOnly {
		d.Say("  r  the tools of " + server + " that it declares read-only\n")
	}
	d.Say(fmt.Sprintf("  s  all %s of %s\n", screen.Quantity(len(ask.Tools), "tool"), server))
	what, err := d.Read(ctx, "What may be called without asking? A letter, or Enter to go back: ")
	if err != nil {
		return v, err
	}
	switch what = strings.ToLower(strings.TrimSpace(what)); {
	case what == "i":
		same := allow.Suggest(ask.Arguments)
		d.Say("A condition in CEL. Enter takes this one:\n  " + screen.Visible(same) + "\n")
		when, err := d.Read(ctx, "If: ")
		if err != nil {
			return v, err
		}
		v.When = cmp.Or(strings.TrimSpace(when), same)
	case what == "r" && ask.ReadOnly:
		v.Tools, v.When = "*", allow.ReadOnly
	case what == "s":
		v.Tools = "*"
	default:
		return host.Verdict{}, nil
	}
	tools, err := ask.Covers(ctx, v)
	if err != nil {
		d.Say(d.Paint(screen.Wrap("  "+screen.OneLine(err.Error()), d.Width), "31") + "\n")
		return host.Verdict{}, nil
	}
	if v.Tools == "" {
		d.Say(screen.Wrap("Arguments that the condition does not name may have any value.", d.Width) + "\n")
	}
	d.Say("As they are defined now:\n")
	for _, t := range tools {
		d.Say("  " + server + "/" + screen.OneLine(t.Name) + "\n")
	}
	how, err := d.Read(ctx, "Call without asking in this [r]un, [a]lways, or Enter to go back: ")
	if err != nil {
		return v, err
	}
	switch strings.ToLower(strings.TrimSpace(how)) {
	case "r", "run":
		v.Answer = host.AllowConversation
	case "a", "always":
		v.Answer = host.AllowAlways
	default:
		return host.Verdict{}, nil
	}
	return v, nil
}
