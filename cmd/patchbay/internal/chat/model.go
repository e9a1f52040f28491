package chat

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host/model"
)

// offers are the models that the server of the current one offers.
type offers struct {
	mu    sync.Mutex
	of    int       // counts changes of the model; guarded by mu
	names []string  // guarded by mu
	asked time.Time // guarded by mu
}

const (
	offersAge  = time.Minute     // for which they are not asked for again
	offersTime = 5 * time.Second // bound of the question
)

// forget is called when the model changes.
func (o *offers) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of, o.names, o.asked = o.of+1, nil, time.Time{}
}

// offered returns the models that the server of the current one offers. Names are kept for a minute.
func (c *Chat) offered(ctx context.Context) ([]string, error) {
	o := &c.models
	o.mu.Lock()
	of, names, asked := o.of, o.names, o.asked
	o.mu.Unlock()
	if c.o.Offered == nil || time.Since(asked) < offersAge {
		return names, nil
	}
	ctx, cancel := context.WithTimeout(ctx, offersTime)
	defer cancel()
	names, err := c.o.Offered(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && o.of == of {
		o.names, o.asked = names, time.Now()
	}
	return names, err
}

func (u *ui) switchModel(_ string, words []string) tea.Cmd {
	if len(words) == 0 {
		name := "none"
		if m := u.model(); m != nil {
			info := m.Info()
			name = screen.OneLine(info.Name)
			if info.Window > 0 {
				name += fmt.Sprintf(", %s tokens", count(int64(info.Window)))
			}
		}
		u.print("  model: " + name)
		if n := len(u.c.o.Models); n > 0 {
			u.print(u.look.wrapped("others: "+screen.OneLine(strings.Join(u.c.o.Models, ", ")), "  ", dim)...)
		}
		return u.later(func(ctx context.Context) func(*ui) {
			names, err := u.c.offered(ctx)
			return func(u *ui) {
				if len(names) > 0 {
					u.print(u.look.wrapped(fmt.Sprintf("%s offered: %s", screen.Quantity(len(names), "model"), screen.OneLine(strings.Join(names, ", "))), "  ", dim)...)
				} else if err != nil {
					u.print(u.look.wrapped("its server lists no models: "+screen.OneLine(err.Error()), "  ", dim)...)
				}
				u.print("")
			}
		})
	}
	if u.c.o.OpenModel == nil {
		u.note("the model cannot be changed here")
		return nil
	}
	name := words[0]
	return u.later(func(context.Context) func(*ui) {
		m, err := u.c.o.OpenModel(name)
		return func(u *ui) {
			switch {
			case err != nil:
				u.note("%v", err)
			case u.turn != nil:
				u.note("the model cannot change during a turn")
			default:
				u.setModel(m)
			}
		}
	})
}

func (u *ui) setModel(m model.Model) {
	u.talk.Model = m
	u.c.models.forget()
	u.note("the model is now %s", m.Info().Name)
}

func offerModels(ctx context.Context, c *Chat, words []string) []item {
	if len(words) > 0 {
		return nil
	}
	var out []item
	for _, m := range c.o.Models {
		out = append(out, item{m, ""})
	}
	names, _ := c.offered(ctx) // /model shows the error
	for _, m := range names {
		out = append(out, item{m, "offered by the server"})
	}
	return out
}
