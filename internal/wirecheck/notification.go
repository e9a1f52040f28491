package wirecheck

import (
	"encoding/json"
)

// listen is one subscriptions/listen stream.
type listen struct {
	asked        map[string]any // params.notifications
	acknowledged bool
	ended        bool
}

func newListen(params any) *listen {
	asked, _ := at(params, "notifications").(map[string]any)
	return &listen{asked: asked}
}

// wants maps notifications of listen streams to the members that request them.
var wants = map[string]string{
	"notifications/tools/list_changed":     "toolsListChanged",
	"notifications/prompts/list_changed":   "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
	"notifications/resources/updated":      "resourceSubscriptions",
}

const acknowledged = "notifications/subscriptions/acknowledged"

func (c *Checker) notification(m *envelope) error {
	method := textOf(m.value["method"])
	params := m.value["params"]
	s := c.specOfNotification(m, method, params)
	if s == nil {
		return m.fault(nil, "JSON-RPC notification", "/method", "", "%q before initialize, and no request of 2026-07-28", method)
	}
	if err := s.validate("JSONRPCNotification", m.pointer, m.value); err != nil {
		return err
	}
	def, known := s.notifications[m.sender][method]
	switch {
	case !known && c.extension(method):
		return nil
	case !known:
		return m.fault(s, "JSONRPCNotification", "/method", "", "the %v has no notification %q", m.sender, method)
	}
	if err := s.validate(def, m.pointer, m.value); err != nil {
		return err
	}
	if err := metaKeys(m, s, def, "/params", params); err != nil {
		return err
	}
	switch method {
	case "notifications/progress":
		if err := c.progress(m, s, def, params); err != nil {
			return err
		}
	case "notifications/cancelled":
		if err := c.cancelled(m, s, def, params); err != nil {
			return err
		}
	}
	if !s.modern {
		return foreign(m, s, def, "/params", params, nil, []string{metaSubscription})
	}
	if m.sender == server {
		return c.modernNotification(m, s, def, method, params)
	}
	return nil
}

// specOfNotification returns the revision of a notification, or nil if there is none. Notifications
// do not name it, so the request or stream they refer to decides.
func (c *Checker) specOfNotification(m *envelope, method string, params any) *spec {
	if c.fixed != nil {
		return c.fixed
	}
	modern := specs[rev2607]()
	if method == "notifications/cancelled" {
		id := idKey(at(params, "requestId"))
		if r := c.open[m.sender][id]; r != nil {
			return r.spec
		}
		if m.sender == server && c.listens[id] != nil {
			return modern
		}
	}
	if at(params, "_meta", metaSubscription) != nil || method == acknowledged {
		return modern
	}
	token, pendingModern := idKey(at(params, "progressToken")), false
	for _, r := range c.open[m.sender.other()] {
		if token != "" && idKey(at(r.params, "_meta", "progressToken")) == token {
			return r.spec
		}
		pendingModern = pendingModern || r.spec.modern && at(r.params, "_meta", metaLogLevel) != nil
	}
	if c.negotiated == nil || pendingModern && method == "notifications/message" {
		return modern
	}
	return c.negotiated
}

// work is the request or task of a progress token.
type work struct {
	done    bool
	last    float64
	started bool
}

// progress checks that a token is known and in use, and that its progress grows.
func (c *Checker) progress(m *envelope, s *spec, def string, params any) error {
	w := c.tokens[m.sender.other()][idKey(at(params, "progressToken"))]
	switch {
	case w == nil:
		return m.fault(s, def, "/params/progressToken", "PROG-26-005", "no request of the %v gave this token", m.sender.other())
	case w.done:
		return m.fault(s, def, "/params/progressToken", "PROG-26-009", "the request of this token is answered")
	}
	n, _ := at(params, "progress").(json.Number)
	value, err := n.Float64()
	if err != nil || w.started && value <= w.last {
		return m.fault(s, def, "/params/progress", "PROG-26-003", "%v after %v: progress must grow", n, w.last)
	}
	w.last, w.started = value, true
	return nil
}

// cancelled checks that a side cancels only its own requests; the response may have crossed the
// notification. 2025-11-25 may omit the id.
func (c *Checker) cancelled(m *envelope, s *spec, def string, params any) error {
	if at(params, "requestId") == nil {
		return nil
	}
	id := idKey(at(params, "requestId"))
	if s.modern && m.sender == server {
		if c.listens[id] == nil {
			return m.fault(s, def, "/params/requestId", "CANC-26-009", "a server cancels only listen streams")
		}
		return nil
	}
	rule := "CANC-25-001"
	if s.modern {
		rule = "CANC-26-008"
	}
	switch r := c.open[m.sender][id]; {
	case r == nil && !c.answered[m.sender][id]:
		return m.fault(s, def, "/params/requestId", rule, "no request of the %v has this id", m.sender)
	case r != nil && r.method == "initialize":
		return m.fault(s, def, "/params/requestId", "CANC-25-002", "initialize cannot be cancelled")
	}
	return nil
}

// modernNotification checks a notification from a server that speaks 2026-07-28 against the
// client's requests.
func (c *Checker) modernNotification(m *envelope, s *spec, def, method string, params any) error {
	id := idKey(at(params, "_meta", metaSubscription))
	switch method {
	case "notifications/message":
		for _, r := range c.open[client] {
			if at(r.params, "_meta", metaLogLevel) != nil {
				return nil
			}
		}
		return m.fault(s, def, "/method", "LOG-26-004", "no open request has a logLevel")
	case acknowledged:
		l := c.listens[id]
		if l == nil || l.ended {
			return m.fault(s, def, "/params/_meta", "SUB-26-006", "subscriptionId of no open listen request")
		}
		l.acknowledged = true
		granted, _ := at(params, "notifications").(map[string]any)
		for name := range granted {
			if _, ok := l.asked[name]; !ok {
				return m.fault(s, def, "/params/notifications/"+name, "SUB-26-004", "acknowledges what was not asked for")
			}
		}
	}
	want, ok := wants[method]
	if !ok {
		return nil
	}
	l := c.listens[id]
	switch {
	case l == nil || l.ended:
		return m.fault(s, def, "/params/_meta", "SUB-26-006", "subscriptionId of no open listen request")
	case !l.acknowledged:
		return m.fault(s, def, "/method", "SUB-26-003", "comes before the acknowledgement of its listen stream")
	case l.asked[want] == nil || l.asked[want] == false:
		return m.fault(s, def, "/method", "SUB-26-001", "the listen request did not ask for %s", want)
	}
	return nil
}
