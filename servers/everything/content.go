package everything

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"sync"

	"github.com/patchbay-dev/patchbay/mcp"
)

func addContent(srv *mcp.Server) {
	block := func(name, description string, blocks func() []mcp.Content) {
		mcp.AddTool(srv, mcp.Tool{Name: name, Description: description, Annotations: harmless},
			func(context.Context, none) ([]mcp.Content, error) { return blocks(), nil })
	}
	block("test_simple_text", "Returns one block of text.", func() []mcp.Content {
		return []mcp.Content{mcp.Text("This is a simple text response for testing.")}
	})
	block("test_image_content", "Returns a picture, image/png.", func() []mcp.Content {
		return []mcp.Content{mcp.ImageContent{Data: picture(), MIMEType: "image/png"}}
	})
	block("test_audio_content", "Returns a tone, audio/wav.", func() []mcp.Content {
		return []mcp.Content{mcp.AudioContent{Data: tone(), MIMEType: "audio/wav"}}
	})
	block("test_embedded_resource", "Returns a resource inside the result.", func() []mcp.Content {
		return []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{
			URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
		}}}
	})
	block("test_multiple_content_types", "Returns text, a picture and a resource.", func() []mcp.Content {
		return []mcp.Content{
			mcp.Text("Multiple content types test:"),
			mcp.ImageContent{Data: picture(), MIMEType: "image/png"},
			mcp.EmbeddedResource{Resource: mcp.ResourceContents{
				URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
			}},
		}
	})
	block("test_resource_link", "Returns links to resources of this server.", func() []mcp.Content {
		return []mcp.Content{
			mcp.ResourceLink{Resource: staticText},
			mcp.ResourceLink{Resource: staticBinary},
		}
	})
	block("test_annotated_content", "Returns text for the user and text for the model.", func() []mcp.Content {
		return []mcp.Content{
			mcp.TextContent{Text: "Done.", Annotations: &mcp.Annotations{Audience: []string{"user"}, Priority: new(1.0)}},
			mcp.TextContent{Text: "Nothing was changed.", Annotations: &mcp.Annotations{Audience: []string{"assistant"}, Priority: new(0.2)}},
		}
	})
}

// picture is a PNG of two sockets and a cord between them.
var picture = sync.OnceValue(func() []byte {
	const size = 32
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	panel, metal, cord := color.RGBA{38, 42, 51, 255}, color.RGBA{200, 205, 212, 255}, color.RGBA{230, 90, 60, 255}
	for y := range size {
		for x := range size {
			at := panel
			left, right := math.Hypot(float64(x-8), float64(y-12)), math.Hypot(float64(x-23), float64(y-12))
			// The cord hangs between the sockets like a parabola.
			sag := 24 - float64((x-15)*(x-15))/5.3
			switch {
			case min(left, right) < 3 || (x >= 8 && x <= 23 && math.Abs(float64(y)-sag) < 1.6):
				at = cord
			case min(left, right) < 5:
				at = metal
			}
			img.SetRGBA(x, y, at)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // only a writer or an empty image can fail
	}
	return b.Bytes()
})

// tone is a WAV of a tenth of a second at 440 Hz: 8 kHz, one channel, 8 bit.
var tone = sync.OnceValue(func() []byte {
	const rate, samples = 8000, 800
	le := binary.LittleEndian
	b := append([]byte("RIFF"), le.AppendUint32(nil, 36+samples)...)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16) // length of the format
	b = le.AppendUint16(b, 1)  // PCM
	b = le.AppendUint16(b, 1)  // channels
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, rate) // bytes a second
	b = le.AppendUint16(b, 1)    // bytes a sample
	b = le.AppendUint16(b, 8)    // bits a sample
	b = append(b, "data"...)
	b = le.AppendUint32(b, samples)
	for i := range samples {
		b = append(b, byte(128+96*math.Sin(2*math.Pi*440*float64(i)/rate)))
	}
	return b
})
