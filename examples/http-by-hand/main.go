// Command http-by-hand is a server of 2026-07-28 over Streamable HTTP without the SDK, with nothing but net/http and encoding/json.
//
//	patchbay call count to=3 -s http://127.0.0.1:7420/mcp
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"
)

const revision = "2026-07-28"

type object map[string]any

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			To int `json:"to"`
		} `json:"arguments"`
		Meta struct {
			Revision string          `json:"io.modelcontextprotocol/protocolVersion"`
			Token    json.RawMessage `json:"progressToken"` // the caller wants progress
		} `json:"_meta"`
	} `json:"params"`
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" { // a web page, perhaps one that a hostile name led here
		http.Error(w, "not for web pages", http.StatusForbidden)
		return
	}
	var req request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, json.RawMessage("null"), -32700, err.Error(), nil)
		return
	}
	header := r.Header.Get
	switch p := &req.Params; {
	case req.ID == nil: // a notification has no answer
		w.WriteHeader(http.StatusAccepted)
	case p.Meta.Revision != revision:
		fail(w, http.StatusBadRequest, req.ID, -32022, "unsupported protocol version", object{"supported": []string{revision}, "requested": p.Meta.Revision})
	case header("MCP-Protocol-Version") != revision || header("Mcp-Method") != req.Method || header("Mcp-Name") != p.Name:
		fail(w, http.StatusBadRequest, req.ID, -32020, "a header differs from the body", nil) // proxies route by them
	case req.Method == "server/discover":
		answer(w, req.ID, object{"supportedVersions": []string{revision}, "capabilities": object{"tools": object{}}, "ttlMs": 0, "cacheScope": "private"})
	case req.Method == "tools/list":
		schema := object{"type": "object", "properties": object{"to": object{"type": "integer"}}, "required": []string{"to"}}
		answer(w, req.ID, object{"tools": []object{{"name": "count", "description": "Count, with progress", "inputSchema": schema}}, "ttlMs": 0, "cacheScope": "private"})
	case req.Method == "tools/call" && p.Name == "count":
		count(w, r, &req)
	case req.Method == "tools/call":
		fail(w, http.StatusOK, req.ID, -32602, "no tool "+p.Name, nil)
	default:
		fail(w, http.StatusNotFound, req.ID, -32601, "no method "+req.Method, nil)
	}
}

// count answers with JSON, or with a stream of events if its caller wants progress: the answer is the last one.
func count(w http.ResponseWriter, r *http.Request, req *request) {
	send := func(object) {}
	if p := &req.Params; p.Meta.Token != nil {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no") // for proxies
		send = func(message object) {
			data, _ := json.Marshal(message) // of what we have made
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
			http.NewResponseController(w).Flush()
		}
	}
	for n := range req.Params.Arguments.To {
		select {
		case <-r.Context().Done(): // the caller has closed the stream, which cancels the call
			return
		case <-time.After(10 * time.Millisecond):
		}
		send(object{"jsonrpc": "2.0", "method": "notifications/progress", "params": object{"progressToken": req.Params.Meta.Token, "progress": n + 1, "total": req.Params.Arguments.To}})
	}
	result := object{"content": []object{{"type": "text", "text": fmt.Sprint("counted to ", req.Params.Arguments.To)}}}
	if req.Params.Meta.Token == nil {
		answer(w, req.ID, result)
		return
	}
	send(complete(req.ID, result))
}

func complete(id json.RawMessage, result object) object {
	result["resultType"] = "complete"
	result["_meta"] = object{"io.modelcontextprotocol/serverInfo": object{"name": "http-by-hand", "version": "1.0.0"}}
	return object{"jsonrpc": "2.0", "id": id, "result": result}
}

func answer(w http.ResponseWriter, id json.RawMessage, result object) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(complete(id, result)) // fails when nobody reads it any more
}

func fail(w http.ResponseWriter, status int, id json.RawMessage, code int, message string, data object) {
	err := object{"code": code, "message": message}
	if data != nil {
		err["data"] = data
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(object{"jsonrpc": "2.0", "id": id, "error": err})
}

func newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", serve) // other methods get 405
	return mux
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", newHandler())) }
