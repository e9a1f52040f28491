// Command units converts lengths. The page docs/write-a-server.md explains it line by line.
package main

import (
	"context"
	"log"
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/mcp"
)

// metres has the length of each unit.
var metres = map[string]float64{"m": 1, "km": 1000, "mi": 1609.344, "ft": 0.3048}

type Length struct {
	Value float64 `json:"value" doc:"the number to convert"`
	From  string  `json:"from" doc:"its unit" enum:"m,km,mi,ft"`
	To    string  `json:"to,omitempty" doc:"the unit of the result" enum:"m,km,mi,ft" default:"m"`
}

type Converted struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func convert(ctx context.Context, in Length) (Converted, error) {
	return Converted{in.Value * metres[in.From] / metres[in.To], in.To}, nil
}

func units(ctx context.Context, _ struct{}) ([]string, error) {
	return slices.Sorted(maps.Keys(metres)), nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "units", Version: "1.0.0"}
	readOnly := &mcp.ToolAnnotations{ReadOnly: new(true)}
	mcp.AddTool(srv, mcp.Tool{Name: "convert", Description: "Convert a length", Annotations: readOnly}, convert)
	mcp.AddTool(srv, mcp.Tool{Name: "units", Description: "List the units", Annotations: readOnly}, units)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
