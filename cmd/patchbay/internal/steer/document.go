package steer

import (
	"net/url"
	"strings"
)

func unescaped(part string) (string, error) { return url.PathUnescape(part) }

type object = map[string]any

// about explains the parameters.
var about = map[string]string{
	"name": "Name of a server, as in mcp.json, or of a node", "lines": "Number of lines, at most 1000; default 100", "follow": "true: go on with lines as they come, a JSON object a line",
	"server": "Only this server; * stands for any text, here and below", "since": "From this time on, such as 7d, 2h, 15:00 or 2026-11-22", "until": "Before this time",
	"who": "Only this principal", "team": "Only this team", "client": "Only this client program", "tool": "Only this tool, prompt or URI", "rule": "Only decisions of this rule",
	"outcome": "Only this outcome, such as ok or error", "fault": "Only errors by deadline, transport or protocol", "slower": "Only calls that took at least this long",
	"kind": "Only lines of this kind, such as call.end or denied", "call": "Only this call",
}

// schemas describe bodies and answers. Answers may get more members.
func schemas() object {
	text, number, flag, at := object{"type": "string"}, object{"type": "integer"}, object{"type": "boolean"}, object{"type": "string", "format": "date-time"}
	of := func(properties object, required ...string) object {
		out := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	}
	names, one := object{"type": "array", "items": text}, object{"type": "string", "description": "Only this replica of the server"}
	list := func(name string) object { return object{"type": "array", "items": ref(name)} }
	return object{
		"Problem": of(object{"type": text, "title": text, "status": number, "detail": text, "servers": object{"type": "array", "items": text}}, "type", "title", "status", "detail"),
		"Report":  of(object{"state": text, "version": text, "pid": number, "url": text, "from": text, "since": at, "servers": list("Server")}, "state", "servers"),
		"Server": of(object{
			"name": text, "state": text, "since": at, "reason": text, "restarts": number, "share": text, "clients": number, "connections": number, "processes": number,
			"tools": number, "prompts": number, "resources": number, "server": text,
		}, "name", "state"),
		"Tools":    of(object{"tools": object{"type": []string{"array", "null"}, "items": object{"type": "object"}}}, "tools"),
		"Line":     of(object{"n": number, "time": at, "event": flag, "text": text}, "n", "time", "text"),
		"Lines":    of(object{"lines": list("Line")}, "lines"),
		"Restart":  of(object{"replica": one, "drain": object{"type": "string", "description": "Time for calls in progress, from 0s to 30s; default 30s", "examples": []string{"5s"}}}),
		"Action":   of(object{"replica": one}),
		"Outcome":  of(object{"server": text, "replica": text, "restarted": names, "left": names, "fault": text, "action": text, "changed": flag, "state": text, "reason": text, "calls": number, "until": at, "text": text}, "server", "action", "changed", "state", "text"),
		"Call":     of(object{"id": number, "server": text, "method": text, "name": text, "principal": text, "session": text, "since": at}, "id", "server", "method", "since"),
		"Calls":    of(object{"calls": list("Call"), "total": number}, "calls", "total"),
		"Session":  of(object{"id": text, "client": text, "version": text, "principal": text, "revision": text, "since": at}, "id", "since"),
		"Sessions": of(object{"sessions": list("Session"), "total": number}, "sessions", "total"),
		"Node":     of(object{"name": text, "state": text, "version": text, "url": text, "since": at, "sessions": number}, "name", "state", "sessions"),
		"Nodes":    of(object{"cluster": text, "node": text, "nodes": list("Node"), "warnings": names}, "cluster", "node", "nodes"),
		"Drain":    of(object{"undo": object{"type": "boolean", "description": "true: let it get requests again"}, "remove": object{"type": "boolean", "description": "true: forget a node that has ended for good"}}),
		"Drained":  of(object{"node": text, "draining": flag, "text": text}, "node", "draining", "text"),
		"Login":    of(object{"subject": text, "name": text, "host": text, "since": at, "ends": at}, "subject", "since", "ends"),
		"Logins":   of(object{"logins": list("Login"), "total": number}, "logins", "total"),
		"Person":   of(object{"person": object{"type": "string", "description": "Subject, principal (URL#SUBJECT) or name of the person", "examples": []string{"alice@example.com"}}}, "person"),
		"Ended":    of(object{"person": text, "ended": number, "text": text}, "person", "ended", "text"),
		"Audit":    of(object{"lines": object{"type": "array", "items": object{"type": "object"}}, "warnings": object{"type": "array", "items": text}}, "lines"),
		"Verified": of(object{
			"whole": flag, "text": names, "lines": number, "files": number, "first": number, "last": number, "checkpoints": number, "signed": at, "unsigned": number,
			"faults": object{"type": "array", "items": object{"type": "object"}}, "notes": object{"type": "array", "items": object{"type": "object"}},
		}, "whole", "text"),
		"Document": of(object{"openapi": text, "paths": object{"type": "object"}}, "openapi", "paths"),
	}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func content(kind, schema string) object { return object{kind: object{"schema": ref(schema)}} }

// document describes the API in OpenAPI 3.1.
func document(routes []route) object {
	paths := map[string]object{}
	for _, r := range routes {
		var parameters []object
		if strings.Contains(r.path, "{name}") {
			parameters = append(parameters, object{"name": "name", "in": "path", "required": true, "description": about["name"], "schema": object{"type": "string"}})
		}
		for _, name := range r.query {
			parameters = append(parameters, object{"name": name, "in": "query", "description": about[name], "schema": object{"type": "string"}})
		}
		op := object{
			"summary":     r.summary,
			"operationId": strings.ToLower(r.method) + strings.NewReplacer("/", "_", "{", "", "}", "", ".", "_").Replace(r.path),
			"responses": object{
				"200":     object{"description": "Done", "content": content("application/json", r.answer)},
				"default": object{"description": "An error", "content": content("application/problem+json", "Problem")},
			},
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if r.body != "" {
			op["requestBody"] = object{"content": content("application/json", r.body)}
		}
		path := Path + r.path
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(r.method)] = op
	}
	return object{
		"openapi":  "3.1.0",
		"info":     object{"title": "Patchbay gateway administration", "version": "1", "description": "Callers need a credential of the gateway with the role admin."},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}},
		"components": object{
			"schemas":         schemas(),
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
	}
}
