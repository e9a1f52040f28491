package chat

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// context shows what the model gets with the next message.
func (u *ui) context(string, []string) tea.Cmd {
	t := u.talk
	return u.briefly(func(ctx context.Context) func(*ui) {
		req, err := t.Preview(ctx)
		return func(u *ui) {
			if err != nil {
				u.note("%s", advice.Words(err))
				return
			}
			fill := u.fill(true)
			show := func(l *look) []string {
				out := []string{l.paint("System prompt, "+screen.Bytes(len(req.System)), bold)}
				for line := range strings.SplitSeq(screen.Visible(req.System), "\n") {
					out = append(out, l.wrapped(line, "  ", "")...)
				}
				out = append(out, "", l.paint(plural(len(req.Tools), "tool"), bold))
				for _, tool := range req.Tools {
					size := len(tool.Name) + len(tool.Description) + len(tool.Schema)
					out = append(out, screen.Cut(fmt.Sprintf("  %s, %s", screen.OneLine(tool.Name), screen.Bytes(size)), l.width))
				}
				out = append(out, "", l.paint(plural(len(req.Messages), "message")+" of the conversation", bold))
				if fill != "" {
					out = append(out, "  "+screen.Cut(fill, l.width-2))
				}
				return out
			}
			if u.look.lines {
				u.print(append(show(&u.look), "")...)
			} else {
				u.pages("context", show)
			}
		}
	})
}
