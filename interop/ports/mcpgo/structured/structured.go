// Package structured is the port of mcp-go's examples/structured_input_and_output: results with a
// schema, and one with a text of its own beside it.
package structured

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/structured"
)

type Place struct {
	Location string `json:"location" doc:"City or location"`
	Units    string `json:"units,omitempty" doc:"celsius or fahrenheit"`
}

type Weather struct {
	Location    string    `json:"location" doc:"Location"`
	Temperature float64   `json:"temperature" doc:"Temperature"`
	Units       string    `json:"units" doc:"Units"`
	Conditions  string    `json:"conditions" doc:"Weather conditions"`
	Timestamp   time.Time `json:"timestamp" doc:"When retrieved"`
}

type Profile struct {
	ID    string   `json:"id" doc:"User ID"`
	Name  string   `json:"name" doc:"Full name"`
	Email string   `json:"email" doc:"Email"`
	Tags  []string `json:"tags" doc:"User tags"`
}

type User struct {
	ID string `json:"userId" doc:"User ID"`
}

type Asset struct {
	ID       string  `json:"id" doc:"Asset identifier"`
	Name     string  `json:"name" doc:"Asset name"`
	Value    float64 `json:"value" doc:"Current value"`
	Currency string  `json:"currency" doc:"Currency code"`
}

type Assets struct {
	Limit int `json:"limit,omitempty" doc:"Number of assets to return" default:"10" min:"1"`
}

var assets = []Asset{
	{"gold", "Gold", 2100.25, "USD"},
	{"silver", "Silver", 24.10, "USD"},
	{"copper", "Copper", 4.05, "USD"},
	{"wheat", "Wheat", 6.20, "USD"},
	{"cocoa", "Cocoa", 7.75, "USD"},
}

func getWeather(_ context.Context, in Place) (Weather, error) {
	t := 22.5
	if in.Units == "fahrenheit" {
		t = t*9/5 + 32
	}
	return Weather{in.Location, t, in.Units, "Cloudy, with some wind", time.Now()}, nil
}

func getProfile(_ context.Context, in User) (Profile, error) {
	return Profile{in.ID, "Ada Lovelace", "ada@example.com", []string{"developer", "golang"}}, nil
}

func getAssets(_ context.Context, in Assets) ([]Asset, error) {
	return assets[:min(in.Limit, len(assets))], nil
}

func manual(_ context.Context, in Place) (structured.Result[Weather], error) {
	w := Weather{in.Location, 25, "celsius", "Sunny", time.Now()}
	text := fmt.Sprintf("Weather in %s: %.1f°C, %s", w.Location, w.Temperature, w.Conditions)
	return structured.Result[Weather]{Value: w, Content: []mcp.Content{mcp.Text(text)}}, nil
}

func Main() {
	srv := &mcp.Server{Name: "Structured Input/Output Example", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "get_weather", Description: "Get weather with structured output"}, getWeather)
	mcp.AddTool(srv, mcp.Tool{Name: "get_user_profile", Description: "Get user profile"}, getProfile)
	mcp.AddTool(srv, mcp.Tool{Name: "get_assets", Description: "Get list of assets as array"}, getAssets)
	mcp.AddTool(srv, mcp.Tool{Name: "manual_structured", Description: "Manual structured result"}, manual)
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
