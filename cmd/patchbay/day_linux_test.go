package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// A person works a day with chat: more than fifty messages over five servers of three revisions, over stdio, HTTP and in the
// process. They approve by each kind of approval, answer forms and pages, attach files, change settings, press ctrl-C in every
// state, read until the conversation is summarised, and continue after kill -9. After each step the screen has what a person
// needs to see and nothing of an earlier frame, the last line is true, and the servers and the model got what was agreed to.
//
// The short form has fewer messages at one size.
func TestDay(t *testing.T) {
	type terminal struct {
		columns, rows int
		api           string // of the model
	}
	all := []terminal{{80, 24, "openai"}, {200, 60, "openai-responses"}}
	for _, tt := range long.Or(all, all[:1]) {
		t.Run(fmt.Sprintf("%dx%d", tt.columns, tt.rows), func(t *testing.T) {
			var steps []step
			for _, part := range [][]step{dayFiles, dayTables, dayShop, dayForms, dayOffice, dayControl, dayInterrupted, dayReports, dayKilled} {
				for _, s := range part {
					if s.short || long.On() {
						steps = append(steps, s)
					}
				}
			}
			d := newDay(t, tt.columns, tt.rows, tt.api, steps)
			d.idle("")
			for _, s := range steps {
				d.play(s)
			}
			shell, err := strconv.Atoi(d.x.Pid())
			if err != nil {
				t.Fatal(err)
			}
			left := descendantsOf(shell)
			if len(left) < 3 {
				t.Fatalf("the terminal has the processes %v, want the program and two servers at least", left)
			}
			d.x.Press("C-c", "C-c")
			d.x.Wait(`(?m)^exit 0$`)
			wantGone(t, left)
		})
	}
}

// Files, on a server that is not trusted: each kind of approval.
var dayFiles = []step{
	{short: true, say: "good morning", answer: "Good morning. What is first?"},
	{short: true, say: "what is on my list?", call: `files_read {"path":"todo.txt"}`, result: "buy milk", answer: "Milk, and the tax.", do: func(d *day) {
		d.asks("? files/read", "┃ May files/read be called?", "┃ Hints: read-only", `┃   "path": "todo.txt"`, "y once  c in this conversation  a always  m more  n no")
		d.press("y")
	}},
	{short: true, say: "and tomorrow?", call: `files_read {"path":"tomorrow.txt"}`, result: "swim", answer: "You want to swim.", do: func(d *day) {
		d.asks("May files/read be called?", `"path": "tomorrow.txt"`, "y once")
		d.press("c")
	}},
	{short: true, say: "read the list again", call: `files_read {"path":"todo.txt"}`, result: "buy milk", answer: "It is still milk and the tax."},
	{say: "what is in the folder?", call: `files_list {}`, result: "todo.txt", answer: "Four files.", do: func(d *day) {
		d.asks("May files/list be called?", "m more")
		d.press("m")
		d.asks("┃ What may be called without asking?", "i files/list, if a condition", "r the ", " of files that it declares read-only", "s all ")
		d.press("r")
		d.asks("┃ May these tools of files be called without asking?", "┃   info: ", "┃     Hints: read-only", "c in this conversation  a always  esc back")
		d.press("c")
	}},
	{say: "as a tree", call: `files_tree {}`, result: "todo.txt", answer: "There is one level."},
	{short: true, say: "make it two litres", call: `files_edit {"path":"todo.txt","edits":[{"old_text":"buy milk","new_text":"buy two litres of milk"}]}`,
		result: "two litres", answer: "Two litres it is.", do: func(d *day) {
			d.asks("May files/edit be called?", "┃ Hints: destructive", "┃ The edits in it:", "┃ -buy milk", "┃ +buy two litres of milk", "y once")
			d.press("y")
		}, then: func(d *day) { d.file("todo.txt", "buy two litres of milk\npay the tax\n") }},
	{short: true, say: "write a plan", call: `files_write {"path":"plan.md","content":"1"}`, result: "did not allow.*Reason: not before noon", answer: "Later, then.", do: func(d *day) {
		d.asks("May files/write be called?", "r no, with a reason")
		d.press("r")
		d.shows("┃ Why:\n", "enter denies")
		d.x.Type("not before noon")
		d.shows("┃ Why: not before noon\n")
		d.press("Enter")
	}, then: func(d *day) { d.noFile("plan.md") }},
	{short: true, say: "it is noon", call: `files_write {"path":"plan.md","content":"1"}`, result: `"created":true`, answer: "Written.", do: func(d *day) {
		d.asks("May files/write be called?", "m more")
		d.press("m")
		d.asks("What may be called without asking?", "i files/write, if a condition")
		d.press("i")
		d.asks("When may files/write be called without asking?", `If: arguments.path == "plan.md" && arguments.content == "1"`, "enter checks it")
		d.press("C-u")
		d.x.Type(`arguments.path == "other.md"`)
		d.press("Enter")
		d.asks("the condition does not hold for this call", "enter checks it")
		d.press("C-u")
		d.x.Type(`arguments.path == "plan.md"`)
		d.press("Enter")
		d.asks("May files/write be called without asking?", `If arguments.path == "plan.md"`, "Arguments that the condition does not name may have any value.", "a always")
		d.press("a")
	}, then: func(d *day) { d.file("plan.md", "1") }},
	{short: true, say: "the second version", call: `files_write {"path":"plan.md","content":"2","overwrite":true}`, result: `"bytes":1`, answer: "Written again.",
		then: func(d *day) { d.file("plan.md", "2") }},
	{say: "and another file", call: `files_write {"path":"other.md","content":"1"}`, result: "did not allow", answer: "No other file.", do: func(d *day) {
		d.asks("May files/write be called?", `"path": "other.md"`, "n no")
		d.press("n")
	}, then: func(d *day) { d.noFile("other.md") }},
}

// A database that is trusted, since it is built in: what reads is not asked about.
var dayTables = []step{
	{say: "make a table of my runs", call: `db_create_table {"query":"CREATE TABLE runs (km REAL)"}`, result: "", answer: "The table is there.", do: func(d *day) {
		d.asks("May db/create_table be called?", "m more")
		d.press("m")
		d.asks("s all ", " of db")
		d.press("s")
		d.asks("May these tools of db be called without asking?", "append_insight: ", "write_query: ", "c in this conversation")
		d.press("c")
	}},
	{say: "I ran 5 km", call: `db_write_query {"query":"INSERT INTO runs VALUES (5)"}`, result: "1", answer: "5 km are noted."},
	{say: "and 7.5 more", call: `db_write_query {"query":"INSERT INTO runs VALUES (7.5)"}`, result: "1", answer: "7.5 km are noted."},
	{say: "how far in all?", call: `db_read_query {"query":"SELECT sum(km) AS km FROM runs"}`, result: `12\.5`, answer: "12.5 km."},
}

// A shop: rules, permanent approvals that are taken back, and read-only mode.
var dayShop = []step{
	{do: func(d *day) {
		d.command("/allow shop/add-to-cart")
		d.noted("called without asking, until this conversation ends, as it is defined now: shop/add-to-cart")
	}},
	{say: "two stoves for Amara", call: `shop_add-to-cart {"customer":"cus-1001","product":"prd-1013","quantity":2}`, result: "crt-", answer: "They are in the cart."},
	{say: "order them", call: `shop_place-order {"customer":"cus-1001","product":"prd-1013","quantity":1}`, result: "ord", answer: "Ordered.", do: func(d *day) {
		d.asks("May shop/place-order be called?", "a always")
		d.press("a")
	}},
	{say: "the same once more", call: `shop_place-order {"customer":"cus-1001","product":"prd-1013","quantity":1}`, result: "ord", answer: "Ordered again."},
	{do: func(d *day) {
		d.command("/allow")
		screen := d.x.Wait(`(?m)^  \d+  shop/place-order +always$`)
		number := regexp.MustCompile(`(?m)^  (\d+)  shop/place-order`).FindStringSubmatch(screen)[1]
		d.shows(`files/write if arguments.path == "plan.md"`, "always, 1 tool", "db/*", "in this conversation, ", "shop/add-to-cart", "in this conversation")
		d.command("/allow off " + number)
		d.noted("you are asked about shop/place-order again")
	}},
	{say: "and again", call: `shop_place-order {"customer":"cus-1001","product":"prd-1013","quantity":1}`, result: "did not allow", answer: "Two are enough.", do: func(d *day) {
		d.asks("May shop/place-order be called?", "n no")
		d.press("n")
	}},
	{do: func(d *day) {
		d.command("/mode read-only")
		d.mode = "read-only"
		d.noted("read-only: only tools that declare themselves read-only are called, with the approvals that they need")
		d.command("/allow shop/*")
		d.noted("in read-only mode, those that do not declare themselves read-only are refused all the same; /mode ask ends it")
	}},
	{say: "order a tent", call: `shop_place-order {"customer":"cus-1001","product":"prd-1001","quantity":1}`, result: "read-only mode", answer: "I would order the Fjordlight 2."},
	{say: "which categories are there?", call: `shop_categories {}`, result: "tents", answer: "Tents, for one."},
	{do: func(d *day) {
		d.command("/mode ask")
		d.mode = ""
		d.noted("mode: ask")
		d.command("/allow off 99")
		d.noted("/allow off takes a number of the list of /allow")
	}},
}

// Questions of a server over HTTP: forms of text, choices and booleans that are sent, declined and dismissed, pages, and
// completions that are changed and refused.
var dayForms = []step{
	{short: true, say: "let it ask who I am", call: `web_test_elicitation {"message":"Who are you?"}`, result: `action=accept.*"username":"Ada"`, answer: "You are Ada.", do: func(d *day) {
		d.asks("May web/test_elicitation be called?", "m more")
		d.press("m")
		d.asks("r the 7 tools of web that it declares read-only")
		d.press("r")
		d.asks("May these tools of web", "c in this conversation")
		d.press("c")
		d.asks("asks: Who are you?", "┃ web asks", "┃ Who are you?", "┃ username *", "┃ email", "enter next  tab moves  ctrl-S review  esc leave")
		d.x.Type("Ada")
		d.press("Enter", "Enter")
		d.asks("! an answer is required")
		d.x.Type("ada@example.com")
		d.press("Enter")
		d.asks("┃ username   Ada", "┃ email      ada@example.com", "enter send to web")
		d.press("Enter")
	}},
	{say: "let it give me choices", call: `web_test_elicitation_sep1330_enums {}`, result: `action=accept.*"untitledMulti":\["option1","option2"\].*"untitledSingle":"option2"`, answer: "You chose.", do: func(d *day) {
		d.asks("┃ Choose.", "┃ untitledSingle   ‹ (choose) ›", "one of option1, option2, option3", "left, right choose")
		d.press("Right", "Right")
		d.asks("┃ untitledSingle   ‹ option2 ›")
		d.press("Tab", "Tab", "Tab", "Space", "Right", "Space")
		d.asks("  [x] option1", "› [x] option2", "left and right move, space selects")
		d.press("C-s")
		d.asks("┃ untitledSingle   option2", "┃ untitledMulti    option1, option2", "enter send to web")
		d.press("Enter")
	}},
	{say: "let it check my values", call: `web_test_elicitation_sep1034_defaults {}`, result: `action=accept.*"age":30.*"verified":false`, answer: "Checked.", do: func(d *day) {
		d.asks("Check the values, then accept.", "John Doe", "30", "95.5", "active", "yes", "enter next")
		d.press("Up")
		d.asks("‹ yes ›", "left, right choose")
		d.press("Right")
		d.asks("‹ no ›")
		d.press("C-s")
		d.asks("verified", "no", "enter send to web")
		d.press("Enter")
	}},
	{say: "let it ask again", call: `web_test_elicitation {"message":"Who are you now?"}`, result: "action=decline", answer: "You declined.", do: func(d *day) {
		d.asks("Who are you now?", "esc leave")
		d.press("Escape")
		d.asks("d decline  c dismiss without an answer  esc back to the form")
		d.press("d")
	}},
	{say: "and once more", call: `web_test_elicitation {"message":"And now?"}`, result: "action=cancel", answer: "You said nothing.", do: func(d *day) {
		d.asks("And now?", "esc leave")
		d.press("Escape")
		d.asks("c dismiss without an answer")
		d.press("c")
	}},
	{say: "log me in", call: `web_visit_page {"url":"https://shop.example.com/login?next=%2Fcart"}`, result: "The user agreed", answer: "You are there.", do: func(d *day) {
		d.asks("┃ web wants you to visit a page", "┃ The page is at shop.example.com.", "┃ https://shop.example.com/login?next=%2Fcart", "┃ The server says:", "y agree without opening")
		d.press("y")
	}},
	{say: "and there", call: `web_visit_page {"url":"https://other.example/"}`, result: "did not want to", answer: "Not there.", do: func(d *day) {
		d.asks("The page is at other.example.", "n no")
		d.press("n")
	}},
	{say: "let it ask you", call: `web_test_sampling {"prompt":"Name the capital of France."}`, aside: "Paris and Madrid.", result: "LLM response: Paris and Madrid.", answer: "It knows.", do: func(d *day) {
		d.asks("┃ web wants a model to answer this", "┃ by openai", "/scripted, at most 100 tokens", "┃   Name the capital of France.", "y let it answer")
		d.press("e")
		d.asks("ctrl-S keep")
		d.x.Type(" And of Spain.")
		d.press("C-s")
		d.asks("┃   Name the capital of France. And of Spain.", "y let it answer")
		d.press("y")
		d.asks("┃ Send this answer to web?", "┃ Paris and Madrid.", "y send")
		d.press("y")
	}},
	{say: "once more", call: `web_test_sampling {"prompt":"Name the capital of Italy."}`, result: "(?i)declined|refused|did not", answer: "It may not.", do: func(d *day) {
		d.asks("Name the capital of Italy.", "n no")
		d.press("n")
	}},
}

// An office of which nothing may happen twice, and whose tool changes after it was allowed for always.
var dayOffice = []step{
	{say: "note that I was here", call: `office_note {"text":"here"}`, result: "noted here", answer: "Noted.", do: func(d *day) {
		d.asks("May office/note be called?", "Hints: destructive, open-world", "y once")
		d.press("y")
	}, then: func(d *day) { d.happened("note here", 1) }},
	{say: "pay Ann", call: `office_pay {"to":"Ann","sum":3}`, result: "paid Ann", answer: "Ann has it.", do: func(d *day) {
		d.asks("May office/pay be called?", "a always")
		d.press("a")
	}},
	{say: "pay Ben", call: `office_pay {"to":"Ben","sum":4}`, result: "paid Ben", answer: "Ben has it."},
	{say: "raise the limit", call: `office_raise {}`, result: "raised", answer: "It is raised.", do: func(d *day) {
		d.asks("May office/raise be called?", "y once")
		d.press("y")
	}},
	{say: "pay Cid", call: `office_pay {"to":"Cid","sum":5000}`, result: "did not allow", answer: "Cid waits.", do: func(d *day) {
		d.asks("┃ May office/pay be called?", "┃ Warning: it has changed since you allowed it: description, inputSchema", "┃ - At most 100.", "┃ + Any sum, from any account.",
			"┃   argument from, new", "┃ - maximum: 100", "┃ + maximum: 100000", "y once")
		d.press("End")
		d.asks("┃ The call now:", `┃   "sum": 5000`, "n no")
		d.press("n")
	}, then: func(d *day) { d.happened("pay Cid", 0) }},
}

// Attachments and settings: the model gets files, folders, an effort and parameters.
var dayControl = []step{
	{say: "what is in @./src/", gets: `(?s)what is in @\./src/.*a\.go.*b\.go`, answer: "Two files.", then: func(d *day) { d.shows("• attached the names in ./src/: 2") }},
	{say: `@"./my notes.txt"`, paste: true, gets: "(?s)my notes.txt.*the notes", answer: "Your notes.", then: func(d *day) { d.shows("• attached ", "my notes.txt, 10 bytes") }},
	{do: func(d *day) {
		d.command("/effort high")
		d.settings = []string{"effort high"}
		d.noted("the model is asked with effort=high")
	}},
	{say: "think well", answer: "I have.", then: func(d *day) { d.sent(`effort":"high"`) }},
	{do: func(d *day) {
		d.command("/effort max")
		d.settings = []string{"effort max"}
		d.noted("the model is asked with effort=max")
		d.settings = []string{"effort max left out"}
	}},
	{say: "think best", fault: &modeltest.Fault{Status: 400, Message: "Unsupported value: 'reasoning_effort' does not support 'max' with this model."}, answer: "As well as I can.", then: func(d *day) {
		d.notSent(`effort":`)
		d.shows("• " + d.name + " takes no effort max here, so it is left out:")
		d.command("/effort default")
		d.settings = nil
		d.noted("effort is now the default of the model")
		d.command("/set temperature=0.2")
		d.settings = []string{"/set"}
		d.noted("the model is asked with temperature=0.2")
	}},
	{say: "be exact", answer: "Exactly.", then: func(d *day) {
		d.sent(`"temperature":0.2`)
		d.command("/context")
		d.shows("System prompt, ", "q back · arrows, PgUp, PgDn scroll")
		d.press("q")
		d.idle("❯ /context\n\n")
		d.command("/servers")
		for _, line := range []string{`files +ready +\d+ tools, .*2026-07-28`, `office +ready +4 tools, .*2025-06-18`, `web +ready +\d+ tools, .*2025-11-25`, `db +ready +\d+ tools, .*trusted, 2026-07-28`, `shop +ready +\d+ tools, .*trusted, 2026-07-28`} {
			d.x.Wait(`(?m)^  ` + line + `$`)
		}
		d.idle("")
	}},
}

// ctrl-C in every state.
var dayInterrupted = []step{
	{short: true, say: "think of something", fault: &modeltest.Fault{Hang: true}, answer: "", do: func(d *day) {
		d.works("thinking")
		d.press("C-c")
	}},
	{short: true, say: "tell me a story", fault: &modeltest.Fault{Hang: true}, answer: "Once upon a time there was a queen, and", do: func(d *day) {
		d.shows("Once upon a time there was a queen, and")
		d.works("answering")
		d.press("C-c")
	}, then: func(d *day) { d.shows("Once upon a time there was a queen, and\n\n• cancelled\n") }},
	{say: "note a secret", call: `office_note {"text":"secret"}`, cut: true, do: func(d *day) {
		d.asks("May office/note be called?", "y once")
		d.press("C-c")
	}, then: func(d *day) { d.shows("⊘ office/note", "cancelled"); d.happened("note secret", 0) }},
	{say: "let it ask me", call: `web_test_elicitation {"message":"Are you there?"}`, cut: true, do: func(d *day) {
		d.asks("Are you there?", "esc leave")
		d.x.Type("half a na")
		d.press("C-c")
	}, then: func(d *day) { d.shows("⊘ web/test_elicitation", "cancelled") }},
	{short: true, say: "hold the line", call: `office_hold {"text":"line"}`, cut: true, do: func(d *day) {
		d.asks("May office/hold be called?", "a always")
		d.press("a")
		d.works("calling office/hold")
		until(d.t, "the line is held", func() bool { return d.ledger("hold line") == 1 })
		d.press("C-c")
	}, then: func(d *day) { d.shows("⊘ office/hold", "cancelled", "Outcome unknown") }},
	{short: true, say: "hold it again", call: `office_hold {"text":"line"}`, result: "did not allow", answer: "The line is free.", do: func(d *day) {
		d.asks("May office/hold be called?", "┃ Warning: the same call was cancelled while it ran, and may have happened", "n no")
		d.press("n")
	}, then: func(d *day) { d.happened("hold line", 1) }},
	{do: func(d *day) {
		d.x.Type("half a message")
		d.shows("❯ half a message\n")
		d.press("C-c")
		d.idle("")
		d.press("C-c")
		d.x.Type("still here")
		d.shows("❯ still here\n")
		d.press("C-r")
		d.shows("search: ", "› ", "  hold the line")
		d.x.Type("story")
		d.shows("search: story\n› tell me a story\n")
		d.press("C-c")
		d.shows("❯ still here\n")
		d.press("C-u")
		d.command("/resume")
		d.shows("resume: ", "› ", "good morning")
		d.press("C-c")
		d.noted("no conversation was resumed")
		d.press("C-o")
		d.shows("calls and thoughts", "› ⊘ office/hold")
		d.press("C-c")
		d.idle("")
		d.x.Type("/mo")
		d.shows("❯ /mo\n", "/model ", "/mode ")
		d.press("C-c")
		d.idle("")
	}},
	{say: "tell me another story", fault: &modeltest.Fault{Hang: true}, answer: "There was a king, and", ends: "• cancelled", do: func(d *day) {
		d.shows("There was a king, and")
		d.x.Type("a shorter one")
		d.press("Enter")
		d.shows("1 message waits for the turn to end")
		d.press("C-c")
		d.shows("• cancelled\n\n❯ a shorter one\n")
		d.press("C-u")
	}},
}

// The conversation grows until it is summarised.
var dayReports = []step{
	{short: true, say: "read the report of March", call: `files_read {"path":"march.txt"}`, result: "March was a month", answer: "March was like others."},
	{short: true, say: "read the report of April", call: `files_read {"path":"april.txt"}`, result: "April was a month", answer: "April was wet."},
	{short: true, say: "and of May", call: `files_read {"path":"may.txt"}`, result: "May was a month", answer: "May was warm."},
	{short: true, say: "which was best?", answer: "May was.", then: func(d *day) {
		if n := strings.Count(d.x.All(), "• summarised, about "); n != 1 {
			d.t.Fatalf("%d lines say that the conversation was summarised, want 1:\n%s", n, d.x.All())
		}
		d.sent(daySummary, "which was best?")
		d.notSent("good morning", "March was a month")
	}},
}

// The program is killed in the middle of a call that is allowed for always, and the conversation goes on.
var dayKilled = []step{
	{short: true, say: "book the room", call: `office_hold {"text":"room"}`, cut: true, ends: "• the program ended before the results came: each of these calls may or may not have happened", do: func(d *day) {
		d.works("calling office/hold")
		until(d.t, "the room is held", func() bool { return d.ledger("hold room") == 1 })
		d.killed()
		d.shows("• continuing ", "❯ which was best?", "May was.", "❯ book the room", `· office_hold {"text":"room"}`)
	}},
	{short: true, say: "did you?", call: `office_hold {"text":"room"}`, result: "did not allow", answer: "I leave it to you.", do: func(d *day) {
		d.asks("May office/hold be called?", "┃ Warning: the answer to the same call was lost, and it may have happened", "n no")
		d.press("n")
	}, then: func(d *day) {
		d.happened("hold room", 1)
		d.sent(daySummary, "which was best?", "May was.", "book the room", "it is not known whether this was called")
	}},
	{say: "pay Dan", call: `office_pay {"to":"Dan","sum":7}`, result: "paid Dan", answer: "Dan has it."},
	{short: true, say: "third version of the plan", call: `files_write {"path":"plan.md","content":"3","overwrite":true}`, result: `"bytes":1`, answer: "Written.",
		then: func(d *day) { d.file("plan.md", "3") }},
	{say: "tell me a long story", fault: &modeltest.Fault{Hang: true}, answer: "There were twins, and", ends: "❯ tell me a long story", do: func(d *day) {
		d.shows("There were twins, and")
		d.killed()
		d.shows("• continuing ")
	}},
	{short: true, say: "good night", answer: "Good night.", then: func(d *day) {
		d.command("/save day.md")
		d.noted("saved as day.md")
		saved, err := os.ReadFile(filepath.Join(d.dir, "day.md"))
		if err != nil {
			d.t.Fatal(err)
		}
		for _, said := range d.said {
			if !strings.Contains(string(saved), said) {
				d.t.Errorf("the conversation has lost %q", said)
			}
		}
	}},
}

// killed kills the program, after which nothing of it is left, and continues the conversation.
func (d *day) killed() {
	d.t.Helper()
	shell, err := strconv.Atoi(d.x.Pid())
	if err != nil {
		d.t.Fatal(err)
	}
	all := descendantsOf(shell)
	if err := syscall.Kill(all[0], syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	d.shows("exit 137")
	wantGone(d.t, all)
	d.start("--continue")
}

// command writes a command, and waits until it is taken.
func (d *day) command(line string) {
	d.t.Helper()
	d.x.Type(line)
	d.x.Press("Enter")
}

// noted waits for a note of the program, however its lines are broken, above the input.
func (d *day) noted(text string) {
	d.t.Helper()
	d.idle(loose("• "+text) + `\n\n`)
}

// file checks the content of a file of the person.
func (d *day) file(name, want string) {
	d.t.Helper()
	if got, err := os.ReadFile(filepath.Join(d.dir, "work", name)); err != nil || string(got) != want {
		d.t.Errorf("%s has %q, %v; want %q", name, got, err, want)
	}
}

func (d *day) noFile(name string) {
	d.t.Helper()
	if _, err := os.Stat(filepath.Join(d.dir, "work", name)); !os.IsNotExist(err) {
		d.t.Errorf("%s is there, although it was not allowed: %v", name, err)
	}
}

// happened checks how many times the office did something.
func (d *day) happened(line string, want int) {
	d.t.Helper()
	if n := d.ledger(line); n != want {
		d.t.Errorf("%q happened %d times, want %d", line, n, want)
	}
}

// sent checks that the last request of the model has texts.
func (d *day) sent(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if body := d.last(); !strings.Contains(body, text) {
			d.t.Errorf("the model got no %q in %s", text, body)
		}
	}
}

func (d *day) notSent(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if body := d.last(); strings.Contains(body, text) {
			d.t.Errorf("the model got %q in %s", text, body)
		}
	}
}
