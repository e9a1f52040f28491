// Command completion suggests values while a user types the arguments of a prompt. The cities depend on
// the country that was chosen before:
//
//	patchbay complete visit city=l country=France -- go run ./examples/completion
package main

import (
	"context"
	"log"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

var cities = map[string][]string{
	"France": {"Lille", "Lyon", "Paris"},
	"Italy":  {"Lecce", "Milan", "Rome"},
}

// starting returns the values that begin with a prefix, in upper or lower case.
func starting(values []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return !strings.HasPrefix(strings.ToLower(v), strings.ToLower(prefix))
	})
}

func completeCountry(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
	return starting(slices.Sorted(maps.Keys(cities)), prefix), nil
}

func completeCity(_ context.Context, prefix string, others map[string]string) ([]string, error) {
	if known, ok := cities[others["country"]]; ok {
		return starting(known, prefix), nil
	}
	return starting(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(cities))...))), prefix), nil
}

type Visit struct {
	Country string `json:"country"`
	City    string `json:"city"`
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "travel", Version: "1.0.0"}
	mcp.AddPrompt(srv, mcp.Prompt{
		Name:     "visit",
		Complete: map[string]mcp.CompleteFunc{"country": completeCountry, "city": completeCity},
	}, func(_ context.Context, in Visit) (string, error) {
		return "Plan a day in " + in.City + ", " + in.Country + ".", nil
	})
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
