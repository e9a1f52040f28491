package chat

import (
	"encoding/base64"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// talk is a conversation of the UI.
type talk struct {
	*host.Conversation
	steps []string        // events for /trace, at most maxSteps
	free  <-chan struct{} // closed when nothing that began before the last turn holds it; nil: nothing does
}

const maxSteps = 2000

// canvas is the output of the UI: a *painter, or a *sheets without a terminal.
type canvas interface {
	show(above []string, f frame)
	redraw()
	emit(s string)
}

// ui is the state of the terminal. It belongs to the loop of tea; events from other goroutines come
// through the mailbox.
type ui struct {
	c       *Chat
	canvas  canvas
	size    func() (width, height int, err error)
	suspend func() // nil: the program cannot be suspended
	resume  func()

	// external runs another program on the terminal, whose end is an edited. Nil: there is no terminal.
	external func(func(in, out *os.File) (string, error)) tea.Cmd

	look   look
	talk   *talk
	turn   *turn        // nil: nothing is in progress
	failed *model.Error // of the model in the last turn; nil: none
	queued string       // the message to send when the turn ends
	blocks []*block     // not above the frame yet
	kept   []*block     // can be opened, at most maxKept
	number int          // of the last kept block
	above  []string     // lines to move above the frame next

	input     editor
	pasted    []string // texts with an @, the newest last
	large     bool     // memory of a large paste is to be released
	history   history
	menu      menu
	picker    *picker // in place of the input; nil: closed
	chord     bool    // ctrl-X was the last key
	focus     focus
	pressed   time.Time // the last key
	questions []*question
	keyed     time.Time // the last key that did not go to a question
	stray     string    // the last key, if a question had no meaning for it
	posed     time.Time // when the first question appeared
	viewer    *viewer   // nil: closed
	states    map[string]gateway.State

	hint      string // shown in the last line, until hintUntil
	hintUntil time.Time
	leave     bool // the next ctrl-C leaves, while the hint is shown
	panicked  string
}

// calm is the time without a key before keys answer a question.
const calm = 700 * time.Millisecond

// newUI returns the UI of a chat on a canvas. The function size returns the size of the terminal;
// past is a conversation to continue, nil for none.
func newUI(c *Chat, canvas canvas, size func() (width, height int, err error), past *host.Conversation) *ui {
	u := &ui{c: c, canvas: canvas, states: map[string]gateway.State{}, size: size}
	u.look = look{width: 80, height: 24, color: c.o.Color, now: time.Now()}
	u.measure()
	u.history.open(c.o.History)
	first := c.h.NewConversation()
	for _, conv := range []*host.Conversation{first, past} {
		if conv != nil && c.o.Begin != nil {
			c.o.Begin(conv)
		}
	}
	u.begin(first)
	if c.o.Lines {
		u.look.lines = true
	} else {
		u.welcome()
	}
	switch {
	case past != nil:
		u.goOn(past)
	case c.o.Choose:
		u.pastOnes("", nil)
	}
	return u
}

// begin makes a conversation the current one.
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

// model returns the current model; nil: none.
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
	u.print(append(append([]string{title}, l.wrapped("/help lists the commands, ctrl-C twice quits", "", dim)...), "")...)
	if u.model() == nil && u.c.o.NoModel != "" {
		u.print(append(l.wrapped(u.c.o.NoModel, "", yellow), "")...)
	}
}

// print adds lines above the frame. They are painted, and their text has been made visible.
func (u *ui) print(lines ...string) {
	u.add(&block{kind: shown, over: true, text: strings.Join(lines, "\n")})
}

// note prints a line for the person.
func (u *ui) note(format string, args ...any) {
	u.add(&block{kind: noted, over: true, text: fmt.Sprintf(format, args...)})
}

// add puts a finished block before unfinished ones, so that it moves above at once.
func (u *ui) add(b *block) {
	at := slices.IndexFunc(u.blocks, func(b *block) bool { return !b.over })
	if at < 0 {
		at = len(u.blocks)
	}
	u.blocks = slices.Insert(u.blocks, at, b)
}

// ticked is a timer event: something may have moved.
type ticked struct{}

// mailed reports that there is mail.
type mailed struct{}

func (u *ui) Init() tea.Cmd {
	if u.c.o.First == "" {
		return tea.Batch(u.tick, u.collect)
	}
	u.input.set(u.c.o.First)
	if u.c.o.Choose { // first, the conversation
		return tea.Batch(u.tick, u.collect)
	}
	return tea.Batch(u.tick, u.collect, u.submit())
}

func (u *ui) tick() tea.Msg {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-u.c.ctx.Done():
	}
	return ticked{}
}

// collect waits for mail, and briefly for more of it.
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

// Update handles a message of tea. It never blocks.
func (u *ui) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if v := recover(); v != nil { // restore the terminal first
			u.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
			cmd = tea.Quit
		}
	}()
	u.look.now = time.Now()
	switch msg := msg.(type) {
	case ticked:
		u.look.tick++
		u.measure()
		u.ring()
		cmd = u.tick
	case mailed:
		for _, m := range u.c.mail.take() {
			cmd = tea.Batch(cmd, u.receive(m))
		}
		cmd = tea.Batch(cmd, u.collect)
	case tea.KeyPressMsg:
		u.pressed = u.look.now
		cmd = u.key(msg)
	case tea.FocusMsg:
		u.focus = here
	case tea.BlurMsg:
		u.left()
	case edited:
		u.written(msg)
	case tea.PasteMsg:
		u.paste(msg.Content)
	case tea.ResumeMsg:
		u.resume()
	default:
		return u, nil
	}
	u.draw()
	u.release()
	return u, cmd
}

// measure updates the size of the terminal.
func (u *ui) measure() {
	w, h, err := u.size()
	if err == nil && w > 0 && h > 0 {
		u.look.width, u.look.height = w, h
	}
}

// receive handles an event from the mailbox.
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

// dismiss removes a question.
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

// closeViewer shows the chat again. A question that appeared behind the viewer becomes visible only
// now.
func (u *ui) closeViewer() {
	u.viewer = nil
	u.posed, u.keyed = u.look.now, u.look.now
}

// asking reports whether keys go to the first question: it is visible and has room.
func (u *ui) asking() bool { return u.calmed() && !u.questions[0].tiny }

// calmed reports whether the first question has been visible for a moment, and the person is not
// typing.
func (u *ui) calmed() bool {
	return len(u.questions) > 0 && u.look.now.Sub(u.posed) >= repaint*10 && u.look.now.Sub(u.keyed) >= calm
}

// status prints that a server fails, or works again.
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

// say shows a text for a moment.
func (u *ui) say(text string) { u.hint, u.hintUntil = text, u.look.now.Add(2*time.Second) }

// key handles a key.
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
		u.say(map[bool]string{true: "thoughts are shown", false: "thoughts are hidden"}[u.look.thoughts])
		return nil
	}
	stray := u.stray
	u.stray = ""
	if u.asking() {
		u.answer(k)
		return nil
	}
	if k.Text != "" && u.picker == nil && u.look.now.Sub(u.keyed) < calm {
		u.input.insert(stray)
	}
	u.keyed = u.look.now
	return u.write(k)
}

// answer passes a key to the first question. A letter without a meaning there may be the first of a message,
// whose others must not answer.
func (u *ui) answer(k tea.KeyPressMsg) {
	q := u.questions[0]
	if !q.dialog.writes() && q.scroll(k) {
		return
	}
	switch a := q.dialog.key(k).(type) {
	case nil:
	case unmeant:
		if k.Text != "" {
			u.stray, u.keyed = k.Text, u.look.now
		}
	default:
		q.reply <- a
		u.dismiss(q)
	}
}

func (u *ui) paste(text string) {
	u.large = u.large || len(text) > largePaste
	switch {
	case u.viewer != nil:
	case utf8.RuneCountInString(text) > maxInput: // split into letters it would take sixteen bytes for each
		u.note("%s", tooLong)
	case u.asking() && u.questions[0].dialog.writes():
		u.questions[0].dialog.paste(text)
	case u.picker != nil:
		u.picker.paste(text)
	default:
		u.keyed = u.look.now
		u.pasteInput(text)
	}
}

const againQuits = "ctrl-C again quits"

// interrupt handles ctrl-C: it cancels the turn, and leaves the second time.
func (u *ui) interrupt() tea.Cmd {
	again := u.leave && u.look.now.Before(u.hintUntil)
	switch {
	case again:
		return tea.Quit
	case u.viewer != nil:
		u.closeViewer()
		return nil
	case u.picker != nil && !u.asking():
		u.closePicker()
		return nil
	case u.turn != nil && !u.turn.cancelled:
		u.turn.cancelled = true
		u.turn.cancel()
		u.say("cancelling; " + againQuits)
	case len(u.questions) > 0 && u.turn == nil:
		q := u.questions[0]
		q.reply <- refusal(q.dialog)
		u.dismiss(q)
		u.say(againQuits)
	case !u.input.empty():
		u.input.set("")
		u.menu.close()
		u.say(againQuits)
	default:
		u.say(againQuits)
	}
	u.leave = true
	return nil
}

// refusal returns the answer that refuses a question.
func refusal(d dialog) any {
	switch d.(type) {
	case *approval:
		return host.Verdict{}
	case *form, *page:
		return &mcp.ElicitResult{Action: "cancel"}
	}
	return mcp.ErrDeclined
}

// write passes a key to the input.
func (u *ui) write(k tea.KeyPressMsg) tea.Cmd {
	if u.picker != nil {
		u.picker.key(k, u)
		return nil
	}
	chord := u.chord
	u.chord = k.String() == "ctrl+x"
	if chord && k.String() == "ctrl+e" {
		return u.edit()
	}
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
	case "ctrl+r":
		u.searchHistory()
		return nil
	case "ctrl+x":
		u.say("ctrl-E opens the message in your editor")
	case "esc", "tab":
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

// recall shows an earlier or later input.
func (u *ui) recall(by int) {
	if text, ok := u.history.move(by, u.input.String()); ok {
		u.input.set(text)
	}
}

// submit sends the input.
func (u *ui) submit() tea.Cmd {
	text := u.input.String()
	if strings.HasSuffix(text, `\`) && u.input.at == len(u.input.text) { // adds a new line, on any terminal
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
		u.say("a message is already waiting")
	}
	return nil
}

// taken empties the input, and adds it to the history.
func (u *ui) taken(text string) {
	if err := u.history.add(strings.TrimSpace(text)); err != nil {
		u.say(screen.OneLine(err.Error()))
	}
	u.input.set("")
	u.menu.close()
}

// osc52 returns the sequence that puts text into the terminal's clipboard.
func osc52(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}
