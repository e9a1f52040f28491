package gateway

// The lists of a server are gone while it is started again, and after it was disabled. A URI that they had
// still belongs to the server: a read waits for it or fails with its state, and is not answered with
// "resource not found", which would be wrong.

// formerOwner returns the server whose lists had a URI before they were dropped, according to the lists that
// the caller could see, or nil.
func (g *Gateway) formerOwner(who client, uri string) *upstream {
	ups := g.upstreams()
	for _, k := range []*listKind{listResources, listTemplates} {
		for _, up := range ups {
			if up.cache.had(up.views(who), k, uri) {
				return up
			}
		}
	}
	return nil
}

// had reports whether a list of one of the clients, or of callers without a principal, had a URI before it was
// dropped.
func (k *listCache) had(who [2]client, kind *listKind, uri string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, who := range []client{who[0], who[1], {}} {
		if l := k.former[keptKey{who, kind.Method}]; l != nil && l.has(uri) {
			return true
		}
	}
	return false
}

// remember keeps the URIs of lists; mu is held.
func (k *listCache) remember(lists map[keptKey]*keptList, kinds ...*listKind) {
	for _, kind := range kinds {
		if kind != listResources && kind != listTemplates {
			continue
		}
		for key, l := range lists {
			if key.method != kind.Method || len(l.ids) == 0 {
				continue
			}
			if k.former == nil {
				k.former = map[keptKey]*keptList{}
			}
			if len(k.former) < maxKept {
				k.former[key] = l.uris()
			}
		}
	}
}

// inherit keeps the URIs of the server that this one replaces.
func (k *listCache) inherit(old *listCache) {
	old.mu.Lock()
	var of listCache
	of.remember(old.former, listResources, listTemplates)
	of.remember(old.lists, listResources, listTemplates)
	old.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.former = of.former
}

// uris returns a list without anything but its URIs and templates, so that it does not keep its server.
func (l *keptList) uris() *keptList {
	short := &keptList{ids: l.ids}
	for _, e := range l.matched {
		short.matched = append(short.matched, entry{id: e.id, template: e.template})
	}
	return short
}
