package main

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/protect"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
)

// paged has the flags of the page.
type paged = protect.Page

// newPage makes the page of an endpoint; nil: there is none.
func (h *upServer) newPage(c *paged, w *listen.Endpoint, auth []string) (_ *inspector.Page, err error) {
	if c.NoPage || !w.Loopback() && !c.On {
		return nil, nil
	}
	page := h.basicPage(strings.TrimSuffix(w.URL, listen.Path) + "/")
	if page.Hosts, page.Sandbox, page.NoSandbox, err = chain.PageAt(w, h.a.deployed); err != nil {
		return nil, chainFault(err)
	}
	page.Server = func(name string) *mcp.Server {
		if name == "*" {
			return w.Server("")
		}
		return w.Server("s/" + name)
	}
	page.Guard, page.Admits, page.Client = w.Guard(), h.chain.Admits, h.a.deployed.PageClient()
	page.Gateway = inspector.Gateway{Counters: h.counters, Admin: h.steers.For, Login: h.steers.Login, Audited: h.chain.AuditLog() != "", Connect: h.paste}
	live := &explain.Live{
		Rules: h.chain.Rules, Tools: h.gateway.KeptToolsOf, Trusted: func(server string) bool { return h.known(server).Trusted }, Auth: auth,
		File: explain.Follow(h.a.program(), h.a.deployed, h.path, h.plan.servers, trustedServer),
	}
	page.Gateway.Explain, page.Gateway.Harmless = live.Explain, live.Harmless
	page.Frames = &inspector.Frames{Redactor: h.a.secrets.Redactor()}
	page.Watch = func() func() { return page.Frames.Follow(h.a.tee) }
	h.asks = steer.NewQuestions(h.gateway.Owner, h.chain.Steered)
	page.Gateway.Questions, page.Gateway.Answer = h.asks.All, h.asks.Answer
	w.HandlePage(page, page.Close)
	h.pageURL = page.URL
	h.notes = append(h.notes, "page: "+page.URL+", opened by patchbay page")
	return page, nil
}

// basicPage makes a page at an address.
func (h *upServer) basicPage(at string) *inspector.Page {
	return &inspector.Page{URL: at, Title: h.from, Version: Version, Local: localPerson(), Report: h.report, Logger: h.a.logger(), Files: h.a.record.Dir, Judge: explain.Judge}
}
