// Command structured returns a forecast in three forms at once: data for programs, a sentence for the
// model, and a chart for the user.
//
//	patchbay call forecast city=Oslo -- go run ./examples/structured
package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/structured"
)

type Place struct {
	City string `json:"city" enum:"Oslo,Rome"`
}

type Forecast struct {
	City    string `json:"city"`
	Celsius []int  `json:"celsius" doc:"highest temperature of each day"`
}

var known = map[string][]int{"Oslo": {3, 5, 2}, "Rome": {17, 19, 20}}

func forecast(_ context.Context, in Place) (structured.Result[Forecast], error) {
	days := known[in.City]
	picture, err := chart(days)
	return structured.Result[Forecast]{
		Value: Forecast{in.City, days},
		Content: []mcp.Content{
			mcp.Text(fmt.Sprintf("Highs in %s over the next %d days: %d °C.", in.City, len(days), days)),
			mcp.ImageContent{Data: picture, MIMEType: "image/png"},
		},
	}, err
}

// chart draws a bar for each day.
func chart(days []int) ([]byte, error) {
	const width, height = 10, 30
	img := image.NewGray(image.Rect(0, 0, width*len(days), height))
	for x := range width * len(days) {
		for y := height - days[x/width]; y < height; y++ {
			img.Set(x, y, color.White)
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "weather", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "forecast", Description: "Forecast the temperature"}, forecast)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
