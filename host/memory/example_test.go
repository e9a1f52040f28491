package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/host/model"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := memory.Open(filepath.Join(dir, "conversations.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ctx := context.Background()
	c, err := s.Create(ctx, memory.Conversation{Title: "Fruit"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Write(ctx, c, 0,
		memory.Entry{Turn: 1, Message: model.UserText("Which fruit is yellow?")},
		memory.Entry{Turn: 1, Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "A banana is."}}}},
	)
	if err != nil {
		log.Fatal(err)
	}
	hits, err := s.Search(ctx, "banana", 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%s, message %d: %s\n", h.Conversation.Title, h.Entry, h.Snippet)
	}
	// Output: Fruit, message 1: A banana is.
}
