package main

import (
	"context"
	"os"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" { // the test started itself as the server
		if err := sqlite.New(sqlite.Options{Demo: true}).ServeStdio(context.Background()); err != nil {
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// A model calls a tool and answers, with any API. A tool that is not allowed is not called.
func TestExample(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"chat", "responses", "messages", "text"} {
		t.Run(api, func(t *testing.T) {
			m := modeltest.Open(t, api, modeltest.MustParse(`
turns:
  - when: {user: Which tables, tools: [db_list_tables]}
    answer: [{call: {name: db_list_tables, arguments: {}}}, {call: {name: db_write_query, arguments: {query: DELETE FROM books}}}]
  - when: {results: {db_list_tables: books, db_write_query: It was not called}}
    answer: [text: "There are books."]
`))
			reply, err := answer(t.Context(), m, "Which tables are there?", []string{self, "serve"})
			if err != nil || reply.Text != "There are books." {
				t.Errorf("answer = %+v, %v", reply, err)
			}
		})
	}
}
