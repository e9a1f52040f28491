// Command client-by-hand calls a tool without the SDK: it starts a server and speaks 2025-11-25 over its standard streams.
//
//	go run ./examples/client-by-hand shout '{"text":"hello"}' go run ./examples/by-hand
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
)

type object map[string]any

// message is a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// wire sends one request at a time.
type wire struct {
	out *json.Encoder // Encode ends each message with \n
	in  *json.Decoder
	id  int
}

// request sends a request and decodes its result.
func (w *wire) request(method string, params object, result any) error {
	w.id++
	if err := w.out.Encode(object{"jsonrpc": "2.0", "id": w.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		var m message
		if err := w.in.Decode(&m); err != nil {
			return err
		}
		switch {
		case m.Method == "ping": // servers may ask, too
			if err := w.out.Encode(object{"jsonrpc": "2.0", "id": m.ID, "result": object{}}); err != nil {
				return err
			}
		case m.Method != "" && m.ID != nil: // we have declared no capability for others
			if err := w.out.Encode(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "no method " + m.Method}}); err != nil {
				return err
			}
		case m.Method != "" || string(m.ID) != fmt.Sprint(w.id): // a notification, or an answer to nothing
		case m.Error != nil:
			return fmt.Errorf("%s: %s (code %d)", method, m.Error.Message, m.Error.Code)
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}

// call opens a session, looks for the tool on all pages of the list, and calls it.
func call(w *wire, tool string, args json.RawMessage) (string, error) {
	var opened struct {
		Revision string `json:"protocolVersion"`
	}
	if err := w.request("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "client-by-hand", "version": "1.0.0"}}, &opened); err != nil {
		return "", err
	}
	if opened.Revision != "2025-11-25" {
		return "", fmt.Errorf("the server speaks %s", opened.Revision)
	}
	if err := w.out.Encode(object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return "", err
	}
	for params, found := (object{}), false; !found; {
		var page struct {
			Tools []struct{ Name string }
			Next  string `json:"nextCursor"`
		}
		if err := w.request("tools/list", params, &page); err != nil {
			return "", err
		}
		for _, t := range page.Tools {
			found = found || t.Name == tool
		}
		if params = (object{"cursor": page.Next}); !found && page.Next == "" {
			return "", errors.New("the server has no tool " + tool)
		}
	}
	var res struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := w.request("tools/call", object{"name": tool, "arguments": args}, &res); err != nil {
		return "", err
	}
	text := ""
	for _, block := range res.Content {
		text += block.Text // pictures and the like have none
	}
	if res.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

func run(tool string, args json.RawMessage, cmd *exec.Cmd) (string, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	text, err := call(&wire{out: json.NewEncoder(in), in: json.NewDecoder(out)}, tool, args)
	in.Close() // which ends the server
	io.Copy(io.Discard, out)
	return text, errors.Join(err, cmd.Wait())
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 {
		log.Fatal("usage: client-by-hand TOOL ARGUMENTS COMMAND…")
	}
	text, err := run(os.Args[1], json.RawMessage(os.Args[2]), exec.Command(os.Args[3], os.Args[4:]...))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
