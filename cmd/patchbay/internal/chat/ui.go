package chat

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// talk is a conversation as the UI has it.
type talk struct {
	*host.Conversation
	steps []string // what happened, for /trace; at most maxSteps
}

const maxSteps = 2000

// turn is what is being done for the person: an answer of the model, or a call by hand.
type turn struct {
	cancel    context.CancelFunc
	cancelled bool
	began     time.Time
	what      string
}

// turnOver says that a turn has ended.
type turnOver struct {
	*turn
	talk *talk
	err  error
}

// canvas is where the UI is painted: a *painter, but for tests.
type canvas interface {
	show(above []string, f frame)
	redraw()
	emit(s string)
}

// ui is the state of the terminal. All of it belongs to the loop of tea; what happens elsewhere
// comes through the mailbox.
type ui struct {
	c       *Chat
	canvas  canvas
	size    func() (width, height int, err error)
	suspend func() // nil: the program cannot be stopped for a while
	resume  func()

	look   look
	talk   *talk
	turn   *turn    // nil: nothing is being done
	queued string   // to be said when the turn is over
	blocks []*block // that are not above yet
	kept   []*block // that can be opened, at most maxKept
	number int      // of the last of them
	above  []string // lines that go above next

	input     editor
	history   history
	menu      menu
	questions []*question
	keyed     time.Time // the last key that was none for a question
	posed     time.Time // when the first question came up
	viewer    *viewer   // nil: closed
	states    map[string]gateway.State

	hint      string // in the last line, until then
	hintUntil time.Time
	leave     bool // the next ctrl-C leaves, while the hint is there
	panicked  string
}

// calm is how long no key must have been pressed before keys answer a question.
const calm = 700 * time.Millisecond

// newUI makes the UI of a chat, on a terminal of some size, with a conversation to go on with;
// nil: there is none.
func newUI(c *Chat, canvas canvas, size func() (width, height int, err error), past *host.Conversation) *ui {
	u := &ui{c: c, canvas: canvas, states: map[string]gateway.State{}, size: size}
	u.look = look{width: 80, height: 24, color: c.o.Color, now: time.Now()}
	u.measure()
	u.history.open(c.o.History)
	u.begin(c.h.NewConversation())
	if c.o.Lines {
		u.look.lines = true
	} else {
		u.welcome()
	}
	if past != nil {
		u.goOn(past)
	}
	return u
}

// begin makes a conversation the one that is talked in.
func (u *ui) begin(conv *host.Conversation) {
	t := &talk{Conversation: conv}
	conv.System = u.c.o.System
	conv.OnEvent = func(e host.Event) { u.c.mail.put(happened{t, e}) }
	if u.talk != nil {
		conv.Model = u.talk.Model
		u.talk.Close()
	}
	if u.c.o.Memory != nil {
		u.c.o.Memory.Keep(conv)
	}
	u.talk = t
}

// model is the one that answers; nil: there is none.
func (u *ui) model() model.Model {
	if u.talk.Model != nil {
		return u.talk.Model
	}
	return u.c.h.Model
}

func (u *ui) welcome() {
	l := &u.look
	title := u.c.o.Title
	if m := u.model(); m != nil {
		title += "  " + l.paint(screen.OneLine(m.Info().Name), bold)
	}
	u.print(title, l.paint("/help says what there is, ctrl-C twice leaves", dim), "")
	if u.model() == nil && u.c.o.NoModel != "" {
		u.print(append(l.wrapped(u.c.o.NoModel, "", yellow), "")...)
	}
}

// print puts lines above the frame. They are painted and visible.
func (u *ui) print(lines ...string) {
	u.add(&block{kind: shown, over: true, text: strings.Join(lines, "\n")})
}

// note tells the person something.
func (u *ui) note(format string, args ...any) {
	u.add(&block{kind: noted, over: true, text: fmt.Sprintf(format, args...)})
}

// add puts a block that is over before what is not, so that it goes above at once.
func (u *ui) add(b *block) {
	at := slices.IndexFunc(u.blocks, func(b *block) bool { return !b.over })
	if at < 0 {
		at = len(u.blocks)
	}
	u.blocks = slices.Insert(u.blocks, at, b)
}

// ticked comes now and then: something may have moved.
type ticked struct{}

// mailed says that there is mail.
type mailed struct{}

func (u *ui) Init() tea.Cmd {
	if u.c.o.First == "" {
		return tea.Batch(u.tick, u.collect)
	}
	u.input.set(u.c.o.First)
	return tea.Batch(u.tick, u.collect, u.submit())
}

func (u *ui) tick() tea.Msg {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-u.c.ctx.Done():
	}
	return ticked{}
}

// collect waits for mail, and a moment for more of it.
func (u *ui) collect() tea.Msg {
	select {
	case <-u.c.mail.wake:
	case <-u.c.ctx.Done():
		return nil
	}
	select {
	case <-time.After(repaint):
	case <-u.c.ctx.Done():
	}
	return mailed{}
}

// View is empty: the UI paints itself.
func (u *ui) View() tea.View { return tea.View{} }

// Update never waits for anything.
func (u *ui) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if v := recover(); v != nil { // the terminal is given back first
			u.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
			cmd = tea.Quit
		}
	}()
	u.look.now = time.Now()
	switch msg := msg.(type) {
	case ticked:
		u.look.tick++
		u.measure()
		cmd = u.tick
	case mailed:
		for _, m := range u.c.mail.take() {
			cmd = tea.Batch(cmd, u.receive(m))
		}
		cmd = tea.Batch(cmd, u.collect)
	case tea.KeyPressMsg:
		cmd = u.key(msg)
	case tea.PasteMsg:
		u.paste(msg.Content)
	case tea.ResumeMsg:
		u.resume()
	default:
		return u, nil
	}
	u.draw()
	return u, cmd
}

// measure follows the size of the terminal.
func (u *ui) measure() {
	w, h, err := u.size()
	if err == nil && w > 0 && h > 0 {
		u.look.width, u.look.height = w, h
	}
}

// receive takes a piece of mail.
func (u *ui) receive(m any) tea.Cmd {
	switch m := m.(type) {
	case happened:
		if m.in == u.talk {
			u.event(m.Event)
		}
	case *question:
		if len(u.questions) == 0 {
			u.posed = u.look.now
		}
		u.questions = append(u.questions, m)
	case withdrawn:
		u.dismiss(m.question)
	case turnOver:
		u.ended(m)
	case host.ServerStatus:
		u.status(m)
	case note:
		u.note("%s", string(m))
	case copied:
		u.canvas.emit(osc52(string(m)))
	case nil: // something that was started has ended
	case broken:
		u.panicked = string(m)
		return tea.Quit
	case func(*ui):
		m(u)
	}
	return nil
}

// dismiss takes a question away.
func (u *ui) dismiss(q *question) {
	at := slices.Index(u.questions, q)
	if at < 0 {
		return
	}
	u.questions = slices.Delete(slices.Clone(u.questions), at, at+1)
	if at == 0 {
		u.posed = u.look.now
	}
}

// closeViewer shows the talk again. A question that came up behind the viewer is seen only now.
func (u *ui) closeViewer() {
	u.viewer = nil
	u.posed, u.keyed = u.look.now, u.look.now
}

// asking tells whether keys are for the first question: it can be seen.
func (u *ui) asking() bool { return u.calmed() && !u.questions[0].tiny }

// calmed tells that the first question stands there for a moment, and that the person is not in
// the middle of writing.
func (u *ui) calmed() bool {
	return len(u.questions) > 0 && u.look.now.Sub(u.posed) >= repaint*10 && u.look.now.Sub(u.keyed) >= calm
}

// status tells of servers that fail, and of those that are back.
func (u *ui) status(s host.ServerStatus) {
	before := u.states[s.Name]
	u.states[s.Name] = s.State
	if before == s.State {
		return
	}
	switch {
	case s.State == gateway.Failing:
		u.note("server %s is failing: %s", s.Name, firstLine(s.Reason))
	case s.State == gateway.NeedsLogin:
		u.note("server %s needs a login: %s", s.Name, firstLine(s.Reason))
	case s.State == gateway.Ready && (before == gateway.Failing || before == gateway.NeedsLogin):
		u.note("server %s is ready again", s.Name)
	}
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return screen.Cut(screen.OneLine(first), 300)
}

// send says something to the model.
func (u *ui) send(text string) {
	if !u.look.lines {
		u.blocks = append(u.blocks, &block{kind: said, over: true, text: bounded(text)})
	}
	if u.model() == nil {
		u.note("%s", u.c.noModel())
		return
	}
	t := u.talk
	u.run("thinking", func(ctx context.Context) error {
		_, err := t.Send(ctx, text)
		return err
	})
}

// noModel says that nobody answers, and what to do about it.
func (c *Chat) noModel() string {
	if c.o.NoModel != "" {
		return c.o.NoModel
	}
	return host.ErrNoModel.Error()
}

// run does something beside the UI, as the turn that ctrl-C cancels.
func (u *ui) run(what string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(u.c.ctx)
	t := &turn{cancel: cancel, began: u.look.now, what: what}
	u.turn = t
	talk := u.talk
	u.c.start(func(context.Context) {
		defer cancel()
		u.c.mail.put(turnOver{t, talk, f(ctx)})
	})
}

// ended is told that a turn is over.
func (u *ui) ended(m turnOver) {
	if m.turn != u.turn {
		return
	}
	u.turn, u.leave = nil, false
	for _, b := range u.blocks {
		u.finish(b)
	}
	switch {
	case m.err == nil:
	case m.cancelled:
		u.note("cancelled")
	case errors.Is(m.err, host.ErrNoModel):
		u.note("%s", u.c.noModel())
	default:
		u.note("%s", bounded(m.err.Error()))
	}
	if queued := u.queued; queued != "" {
		u.queued = ""
		if m.err != nil { // it may not be meant any more
			u.input.set(strings.TrimSpace(queued + "\n" + u.input.String()))
			return
		}
		u.send(queued)
	}
}

// finish ends a block that nothing more is told of.
func (u *ui) finish(b *block) {
	if b.over {
		return
	}
	b.over = true
	if b.kind == answer { // there is nothing more to see of it than what was shown
		return
	}
	if !b.began.IsZero() {
		b.took = u.look.now.Sub(b.began)
	}
	if b.kind == called && b.state != finished {
		b.state, b.call.Outcome = finished, host.Cancelled
	}
	u.keep(b)
}

// keep has a block stay, to be opened.
func (u *ui) keep(b *block) {
	if b.kind == thought && strings.TrimSpace(b.text) == "" {
		return
	}
	if b.number == 0 {
		u.number++
		b.number = u.number
	}
	u.kept = append(u.kept, b)
	u.kept = u.kept[max(0, len(u.kept)-maxKept):]
}

// say shows something for a moment.
func (u *ui) say(text string) { u.hint, u.hintUntil = text, u.look.now.Add(2*time.Second) }

// key does what a key says.
func (u *ui) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name != "ctrl+c" {
		u.leave = false
	}
	switch name {
	case "ctrl+c":
		return u.interrupt()
	case "ctrl+z":
		if u.suspend == nil {
			return nil
		}
		u.suspend()
		return tea.Suspend
	case "ctrl+l":
		u.canvas.redraw()
		return nil
	}
	if u.viewer != nil {
		if u.viewer.key(k, &u.look) {
			u.closeViewer()
		}
		return nil
	}
	switch name {
	case "ctrl+o":
		u.open(0)
		return nil
	case "ctrl+t":
		u.look.thoughts = !u.look.thoughts
		u.say(map[bool]string{true: "thoughts are shown", false: "thoughts are folded"}[u.look.thoughts])
		return nil
	}
	if u.asking() {
		u.answer(k)
		return nil
	}
	u.keyed = u.look.now
	return u.write(k)
}

// answer gives a key to the first question.
func (u *ui) answer(k tea.KeyPressMsg) {
	q := u.questions[0]
	if !q.dialog.writes() && q.scroll(k) {
		return
	}
	if a := q.dialog.key(k); a != nil {
		q.reply <- a
		u.dismiss(q)
	}
}

func (u *ui) paste(text string) {
	switch {
	case u.viewer != nil:
	case u.asking():
		u.questions[0].dialog.paste(text)
	default:
		u.keyed = u.look.now
		u.input.insert(text)
		u.menu.close()
	}
}

// interrupt is ctrl-C: it cancels what is done, and twice it leaves.
func (u *ui) interrupt() tea.Cmd {
	again := u.leave && u.look.now.Before(u.hintUntil)
	switch {
	case again:
		return tea.Quit
	case u.viewer != nil:
		u.closeViewer()
		return nil
	case u.turn != nil && !u.turn.cancelled:
		u.turn.cancelled = true
		u.turn.cancel()
		u.say("cancelling; ctrl-C again leaves")
	case len(u.questions) > 0 && u.turn == nil:
		q := u.questions[0]
		q.reply <- refusal(q.dialog)
		u.dismiss(q)
		u.say("ctrl-C again leaves")
	case !u.input.empty():
		u.input.set("")
		u.menu.close()
		u.say("ctrl-C again leaves")
	default:
		u.say("ctrl-C again leaves")
	}
	u.leave = true
	return nil
}

// refusal is the answer of somebody who does not want to answer.
func refusal(d dialog) any {
	switch d.(type) {
	case *approval:
		return host.Verdict{}
	case *form, *page:
		return &mcp.ElicitResult{Action: "cancel"}
	}
	return mcp.ErrDeclined
}

// write gives a key to the input.
func (u *ui) write(k tea.KeyPressMsg) tea.Cmd {
	if u.menu.key(k, u) {
		return nil
	}
	width := u.inputWidth()
	switch k.String() {
	case "enter":
		return u.submit()
	case "up":
		if !u.input.vertical(-1, width) {
			u.recall(-1)
		}
	case "down":
		if !u.input.vertical(1, width) {
			u.recall(1)
		}
	case "ctrl+p":
		u.recall(-1)
	case "ctrl+n":
		u.recall(1)
	case "ctrl+d":
		if u.input.empty() {
			return tea.Quit
		}
		u.input.key(k)
	case "esc":
	case "tab":
	default:
		u.input.key(k)
	}
	if k.Text != "" || k.String() == "tab" || k.String() == "backspace" {
		u.menu.follow(u, k.String() == "tab")
	} else {
		u.menu.close()
	}
	return nil
}

// recall shows what was said before or after that.
func (u *ui) recall(by int) {
	if text, ok := u.history.move(by, u.input.String()); ok {
		u.input.set(text)
	}
}

// submit takes what was written.
func (u *ui) submit() tea.Cmd {
	text := u.input.String()
	if strings.HasSuffix(text, `\`) && u.input.at == len(u.input.text) { // on any terminal a way to a new line
		u.input.set(strings.TrimSuffix(text, `\`) + "\n")
		return nil
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil
	}
	if isCommand(trimmed) {
		cmd, taken := u.command(trimmed)
		if taken {
			u.taken(text)
		}
		return cmd
	}
	switch {
	case u.turn == nil:
		u.taken(text)
		u.send(trimmed)
	case u.queued == "":
		u.queued = trimmed
		u.taken(text)
	default:
		u.say("one message waits already")
	}
	return nil
}

// taken empties the input, and remembers what was in it.
func (u *ui) taken(text string) {
	if err := u.history.add(strings.TrimSpace(text)); err != nil {
		u.say(screen.OneLine(err.Error()))
	}
	u.input.set("")
	u.menu.close()
}

// osc52 has the terminal put text into its clipboard.
func osc52(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}
