package main

import (
	"bytes"
	"image/png"
	"reflect"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Every client gets the sentence and the chart, and those since 2025-06-18 the data too.
func TestForecast(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		res, err := s.CallTool(t.Context(), "forecast", Place{"Oslo"})
		if err != nil || len(res.Content) != 2 || res.Text() != "Highs in Oslo over the next 3 days: [3 5 2] °C." {
			t.Fatalf("forecast = %v, %v", res, err)
		}
		picture, ok := res.Content[1].(mcp.ImageContent)
		if img, err := png.Decode(bytes.NewReader(picture.Data)); !ok || err != nil || img.Bounds().Dx() != 30 {
			t.Errorf("the chart is %v, %v", res.Content[1], err)
		}
		if s.Revision() >= mcp.V2025_06_18 {
			got, err := mcp.CallAs[Forecast](t.Context(), s, "forecast", Place{"Oslo"})
			if want := (Forecast{"Oslo", []int{3, 5, 2}}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the data are %v, %v, want %v", got, err, want)
			}
		}
	})
}
