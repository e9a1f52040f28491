package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The pictures of terminals in docs/images are what a terminal shows. -update writes them.
func TestPictures(t *testing.T) {
	images, err := filepath.Abs("../../docs/images")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(t *testing.T) (screen, label string){"up": upPicture, "chat": chatPicture} {
		t.Run(name, func(t *testing.T) {
			got, err := tmux.Picture(of(t))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(images, name+".svg")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got {
				t.Errorf("%s is not what the terminal shows now: run go test ./cmd/patchbay -run TestPictures -update and look at it. The new one:\n%s", file, got)
			}
		})
	}
}

func upPicture(t *testing.T) (screen, label string) {
	dir := filepath.Join(alone(t), "project")
	runtimeFolder(t)
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil { // a folder without a project is not served
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // a server that takes more than 1.5 seconds is shown as starting
		x := tmux.Start(t, 160, 40, []string{testRun + "=patchbay"}, "sh", "-c", "cd "+dir+" && exec "+self+" up --http 127.0.0.1:0")
		if !strings.Contains(x.Wait(`ctrl-C ends it`), "starting") {
			screen = x.Painted()
			break
		}
	}
	if screen == "" {
		t.Fatal("servers did not start within 1.5 seconds, twenty times")
	}
	screen = strings.NewReplacer(dir, "/home/you/project", self, "patchbay").Replace(screen)
	screen = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(screen, "127.0.0.1:7420")
	return "\x1b[1m$ patchbay up\x1b[0m\n" + screen, "A terminal with patchbay up: a table of four servers, and for each host the line that connects it"
}

func chatPicture(t *testing.T) (screen, label string) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - when: {user: "two stoves"}
    answer:
      - text: I look for stoves in the kitchen.
      - call: {name: shop_products, arguments: {category: kitchen}}
  - when: {results: {shop_products: "Ember Stove"}}
    answer:
      - text: The Ember Stove is in stock, so I order two of it.
      - call: {name: shop_place-order, arguments: {customer: cus-1001, items: [{product: prd-1013, quantity: 2}]}}
`))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := tmux.Start(t, 90, 40, []string{testRun + "=patchbay"}, self, "chat", "-m", "openai/gpt-5-mini", "-s", "shop")
	x.Wait(ready)
	x.Type("Order two stoves for Amara.")
	x.Press("Enter")
	x.Wait(`May shop/place-order be called\?[\s\S]*y once`)
	for before := "-"; screen != before; { // until nothing changes but the time and what turns
		before = screen
		screen = regexp.MustCompile(`\d+\.\d s`).ReplaceAllString(x.Painted(), "0.1 s")
		screen = regexp.MustCompile(`[\x{2800}-\x{28ff}]`).ReplaceAllString(screen, "⠹")
	}
	return screen, "A terminal with patchbay chat: the model wants to place an order, and the person is asked"
}
