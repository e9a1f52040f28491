// Command by-hand is a server without the SDK: MCP 2026-07-28 and 2025-11-25 over standard streams,
// with nothing but encoding/json. docs/wire.md explains it byte by byte.
//
//	patchbay call shout text=hello -- go run ./examples/by-hand
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"
)

const modern, legacy = "2026-07-28", "2025-11-25"

// request is a request, or a notification if it has no ID.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`      // of tools/call
		Arguments json.RawMessage `json:"arguments"` // of tools/call
		Meta      struct {
			Revision string `json:"io.modelcontextprotocol/protocolVersion"` // only in 2026-07-28
		} `json:"_meta"`
	} `json:"params"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  object          `json:"result,omitzero"`
	Error   *failure        `json:"error,omitzero"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    object `json:"data,omitzero"`
}

type object map[string]any

var self = object{"name": "by-hand", "version": "1.0.0"}

// serve answers requests, one a line, until in ends.
func serve(in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewReader(in), json.NewEncoder(out) // Encode ends each answer with \n
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the client has closed our input: the end
		}
		if err != nil {
			return err
		}
		var req request
		res := response{JSONRPC: "2.0", ID: json.RawMessage("null")}
		if err := json.Unmarshal(line, &req); err != nil {
			res.Error = &failure{Code: -32700, Message: err.Error()}
		} else if req.ID == nil {
			continue // a notification has no answer
		} else {
			res.ID = req.ID
			res.Result, res.Error = answer(&req)
		}
		if err := answers.Encode(res); err != nil {
			return err
		}
	}
}

func answer(req *request) (object, *failure) {
	revision := req.Params.Meta.Revision
	if revision != "" && revision != modern {
		return nil, &failure{-32022, "unsupported protocol version", object{"supported": []string{modern, legacy}, "requested": revision}}
	}
	result, fail := object{}, (*failure)(nil)
	switch req.Method {
	case "initialize": // 2025-11-25: the handshake
		return object{"protocolVersion": legacy, "capabilities": object{"tools": object{}}, "serverInfo": self}, nil
	case "ping": // 2025-11-25
	case "server/discover": // 2026-07-28: the description
		result = object{"supportedVersions": []string{modern, legacy}, "capabilities": object{"tools": object{}}, "ttlMs": 0, "cacheScope": "private"}
	case "tools/list":
		schema := object{"type": "object", "properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}
		result["tools"] = []object{{"name": "shout", "description": "Say it loudly", "inputSchema": schema}}
		if revision == modern {
			result["ttlMs"], result["cacheScope"] = 0, "private"
		}
	case "tools/call":
		result, fail = call(req.Params.Name, req.Params.Arguments)
	default:
		return nil, &failure{Code: -32601, Message: "no method " + req.Method}
	}
	if revision == modern && fail == nil {
		result["resultType"], result["_meta"] = "complete", object{"io.modelcontextprotocol/serverInfo": self}
	}
	return result, fail
}

func call(name string, arguments json.RawMessage) (object, *failure) {
	if name != "shout" {
		return nil, &failure{Code: -32602, Message: "no tool " + name}
	}
	var in struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil || in.Text == nil { // a model can correct this
		return object{"content": []object{{"type": "text", "text": "text must be a string"}}, "isError": true}, nil
	}
	return object{"content": []object{{"type": "text", "text": strings.ToUpper(*in.Text) + "!"}}}, nil
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil { // standard error is for people
		log.Fatal(err)
	}
}
