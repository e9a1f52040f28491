package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	approvals "github.com/patchbay-dev/patchbay/host/approval"
)

// permission is what /allow lists: what the person allowed at once, until the conversation ends or always.
type permission struct {
	server string
	rule   approvals.Rule
	always bool
	tools  []string
}

func (p *permission) has(a approvals.Approval) bool {
	return a.Server == p.server && a.Rule == p.rule && (p.rule.Text != "" || slices.Contains(p.tools, a.Tool))
}

// title returns the rule as people read it.
func (p *permission) title() string {
	return screen.OneLine(cmp.Or(p.rule.Text, p.server+"/"+p.tools[0]))
}

// permissions returns what the person allowed here.
func (u *ui) permissions() (list []*permission, err error) {
	add := func(all []approvals.Approval, always bool) {
		for _, a := range all {
			at := slices.IndexFunc(list, func(p *permission) bool { return p.has(a) })
			if at < 0 {
				at = len(list)
				list = append(list, &permission{server: a.Server, rule: a.Rule, always: always, tools: []string{a.Tool}})
			}
			if p := list[at]; !slices.Contains(p.tools, a.Tool) {
				p.tools = append(p.tools, a.Tool)
			}
		}
	}
	if f, ok := u.c.h.Approvals.(*approvals.File); ok {
		stored, err := f.List()
		if err != nil {
			return nil, err
		}
		servers := u.serverNames()
		add(slices.DeleteFunc(stored, func(a approvals.Approval) bool { return !slices.Contains(servers, a.Server) }), true)
	}
	add(u.talk.Grants(), false)
	return list, nil
}

func (u *ui) serverNames() (names []string) {
	for _, s := range u.c.h.Servers() {
		names = append(names, cmp.Or(s.Group, s.Name))
	}
	return names
}

// allow lists what may be called without asking, allows more, or withdraws it.
func (u *ui) allow(rest string, _ []string) tea.Cmd {
	word, after, _ := strings.Cut(rest, " ")
	answer := host.AllowConversation
	switch {
	case rest == "":
		u.showPermissions()
		return nil
	case word == "off":
		u.disallow(strings.TrimSpace(after))
		return nil
	case word == "always":
		answer, rest = host.AllowAlways, after
	}
	tools, when, err := allow.Parse(rest, u.serverNames())
	if err != nil {
		u.note("%v", err)
		return nil
	}
	t := u.talk
	return u.later(func(ctx context.Context) func(*ui) {
		list, err := t.Permit(ctx, tools, when, answer)
		return func(u *ui) {
			if err != nil {
				u.note("%s", screen.OneLine(err.Error()))
			}
			if len(list) > 0 {
				u.permitted(list, when, answer)
			}
		}
	})
}

// permitted says what is allowed now.
func (u *ui) permitted(list []host.Tool, when string, answer host.Answer) {
	var names []string
	for _, t := range list {
		names = append(names, screen.OneLine(t.Server+"/"+t.Tool.Name))
	}
	until := "until this conversation ends"
	if answer == host.AllowAlways {
		until = "from now on"
	}
	if when != "" {
		until = "if " + screen.OneLine(when) + ", " + until
	}
	u.note("called without asking, %s, as %s defined now: %s", until, map[bool]string{true: "it is", false: "they are"}[len(list) == 1], strings.Join(names, ", "))
	if u.talk.Mode == host.ModeReadOnly && slices.ContainsFunc(list, func(t host.Tool) bool { return !readOnly(t.Tool) }) {
		u.note("%s", modeRefuses)
	}
}

const modeRefuses = "in read-only mode, those that do not declare themselves read-only are refused all the same; /mode ask ends it"

func (u *ui) showPermissions() {
	l := &u.look
	list, err := u.permissions()
	if err != nil {
		u.note("%s", screen.OneLine(err.Error()))
	}
	wide := 0
	for _, p := range list {
		wide = max(wide, screen.Columns(p.title()))
	}
	for _, rule := range u.c.h.Allow {
		wide = max(wide, screen.Columns(screen.OneLine(rule)))
	}
	wide = min(wide, l.width/2)
	for i, p := range list {
		says := map[bool]string{true: "always", false: "in this conversation"}[p.always]
		if p.rule.Text != "" {
			says += ", " + screen.Quantity(len(p.tools), "tool")
		}
		u.row(fmt.Sprintf("%d  %s", i+1, p.title()), wide+3, says)
	}
	for _, rule := range u.c.h.Allow {
		u.row("-  "+screen.OneLine(rule), wide+3, "by --allow")
	}
	if len(list)+len(u.c.h.Allow) == 0 {
		u.print("  nothing is allowed by a rule; /allow SERVER/TOOL [CONDITION] allows calls")
	} else if u.talk.Mode == host.ModeReadOnly {
		u.print(l.wrapped(modeRefuses, "  ", dim)...)
	}
	u.print("")
}

// disallow withdraws what /allow lists under a number.
func (u *ui) disallow(number string) {
	list, err := u.permissions()
	n, wrong := strconv.Atoi(number)
	switch {
	case err != nil:
		u.note("%s", screen.OneLine(err.Error()))
		return
	case wrong != nil || n < 1 || n > len(list):
		u.note("/allow off takes a number of the list of /allow")
		return
	}
	p := list[n-1]
	u.talk.Revoke(p.has)
	if f, ok := u.c.h.Approvals.(*approvals.File); ok && p.always {
		if _, err := f.Revoke(p.has); err != nil {
			u.note("%s", screen.OneLine(err.Error()))
			return
		}
	}
	u.note("you are asked about %s again", p.title())
}
