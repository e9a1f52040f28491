package wirecheck

// Keys of _meta that make a request of 2026-07-28 self-contained.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

const extTasks = "io.modelcontextprotocol/tasks"

// request checks a request and records it.
func (c *Checker) request(m *envelope) error {
	method, _ := m.value["method"].(string)
	s := c.specOfRequest(m, method)
	if s == nil {
		return m.fault(nil, "JSON-RPC request", "/method", "INIT-25-001", "%q before initialize, and without the _meta of 2026-07-28", method)
	}
	params := m.value["params"]
	def, known := s.requests[m.sender][method]
	r := &request{spec: s, method: method, result: "Result", params: params, sender: m.sender}
	if known {
		r.result = s.resultOf(def)
	}
	if task, ok := c.tasks[m.sender][textOf(at(params, "taskId"))]; ok && def == "GetTaskPayloadRequest" {
		r.result = task
	}
	if method == "initialize" && m.sender == client && !s.modern {
		c.used = [2]map[string]bool{make(map[string]bool), make(map[string]bool)} // a new session
	}
	reused, pending := c.used[m.sender][m.id], c.open[m.sender][m.id] != nil
	if m.id != "" {
		c.open[m.sender][m.id] = r
		delete(c.answered[m.sender], m.id)
		if !s.modern {
			c.used[m.sender][m.id] = true
		}
		if method == "subscriptions/listen" && s.modern {
			c.listens[m.id] = newListen(params)
		}
	}
	if token := idKey(at(params, "_meta", "progressToken")); token != "" {
		c.tokens[m.sender][token] = new(work)
	}

	if err := s.validate("JSONRPCRequest", m.pointer, m.value); err != nil {
		return err
	}
	switch {
	case m.id == "":
		return m.fault(s, "JSONRPCRequest", "/id", "BASE-26-003", "an id is a string or an integer")
	case pending && s.modern:
		return m.fault(s, "JSONRPCRequest", "/id", "BASE-26-005", "id of a request that is not answered yet")
	case (pending || reused) && !s.modern:
		return m.fault(s, "JSONRPCRequest", "/id", "BASE-25-002", "id used before in this session")
	case !known && c.extension(method):
		return nil
	case !known && m.sender == server && s.modern:
		return m.fault(s, "ServerRequest", "/method", "MRTR-26-001", "a server does not send requests, but this is %q", method)
	case !known:
		return m.fault(s, "JSONRPCRequest", "/method", "", "the %v has no request %q", m.sender, method)
	}
	if err := s.validate(def, m.pointer, m.value); err != nil {
		return err
	}
	if err := metaKeys(m, s, def, "/params", params); err != nil {
		return err
	}
	return c.requestRules(m, s, def, params)
}

// specOfRequest returns the revision of a request, or nil if there is none.
func (c *Checker) specOfRequest(m *envelope, method string) *spec {
	if c.fixed != nil {
		return c.fixed
	}
	if meta, ok := at(m.value, "params", "_meta").(map[string]any); ok && m.sender == client {
		if _, modern := meta[metaVersion]; modern {
			return specs[rev2607]()
		}
	}
	switch {
	case method == "initialize" && m.sender == client:
		asked, _ := at(m.value, "params", "protocolVersion").(string)
		if loaded := specs[asked]; loaded != nil && asked < rev2607 {
			return loaded()
		}
		return specs[rev2511]() // any other version is answered with the newest legacy one
	case c.negotiated == nil && method == "ping":
		return specs[rev2511]()
	}
	return c.negotiated
}

// requestRules checks the rules for requests that are not in the schema.
func (c *Checker) requestRules(m *envelope, s *spec, def string, params any) error {
	if !s.modern {
		return foreign(m, s, def, "/params", params,
			[]string{"inputResponses", "requestState"},
			[]string{metaVersion, metaCapabilities, metaClientInfo, metaLogLevel})
	}
	if version := at(params, "_meta", metaVersion); c.fixed != nil && version != s.revision {
		return m.fault(s, def, "/params/_meta/io.modelcontextprotocol~1protocolVersion", "META-26-006", "version %q", version)
	}
	if method := m.value["method"]; !rounds(method) && method != "tasks/update" {
		for _, name := range []string{"inputResponses", "requestState"} {
			if at(params, name) != nil {
				return m.fault(s, def, "/params/"+name, "MRTR-26-002", "this request has no input rounds")
			}
		}
	}
	return nil
}

// rounds reports whether a method of 2026-07-28 may ask for input.
func rounds(method any) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// foreign reports members of value, and keys of its _meta, that belong to another revision.
func foreign(m *envelope, s *spec, def, pointer string, value any, members, metaKeys []string) error {
	for _, name := range members {
		if object, _ := value.(map[string]any); object != nil {
			if _, ok := object[name]; ok {
				return m.fault(s, def, pointer+"/"+name, "", "a member of 2026-07-28")
			}
		}
	}
	if meta, ok := at(value, "_meta").(map[string]any); ok {
		for _, key := range metaKeys {
			if _, ok := meta[key]; ok {
				return m.fault(s, def, pointer+"/_meta"+pointerOf([]string{key}), "", "a key of 2026-07-28")
			}
		}
	}
	return nil
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}
