package issuer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Login is a login of a person with a host.
type Login struct {
	Subject string    // of the person, at the identity provider
	Name    string    // preferred_username of the person, else email; empty: the provider tells neither
	Host    string    // name of the host, as it says itself; empty: it has none
	Since   time.Time // when the person logged in
	Ends    time.Time // when the person has to log in again
}

// Logins returns the logins that have not ended, the oldest first.
func (s *Server) Logins() (list []Login, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	now := time.Now().Unix()
	s.sessions.mu.Lock()
	for _, one := range s.sessions.known {
		if !one.Over && one.Ends > now && one.Person != "" && s.current(one.ID) {
			list = append(list, one.login())
		}
	}
	s.sessions.mu.Unlock()
	slices.SortFunc(list, func(a, b Login) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Host, b.Host))
	})
	return list, nil
}

// EndLogins ends all logins of a person, and returns their number: the tokens of their hosts are refused
// from now on. The person is a Subject, a principal ("URL#SUBJECT"), or a Name in another case too. The
// person can log in again; Require, or the identity provider, can prevent that.
func (s *Server) EndLogins(person string) (n int, err error) {
	if err := s.Check(); err != nil {
		return 0, err
	}
	if person == "" {
		return 0, fmt.Errorf("issuer: no person is named")
	}
	ended, err := s.sessions.endAll(func(one session) bool {
		return one.Person == person || s.URL+"#"+one.Person == person || one.Name != "" && strings.EqualFold(one.Name, person)
	})
	n = len(ended)
	for i := range ended {
		s.ended(nil, "", &ended[i], "the logins of the person were ended")
	}
	if s.Logger != nil {
		s.Logger.Info("logins of a person ended", "person", person, "count", n)
	}
	if err != nil {
		err = fmt.Errorf("issuer: %w", err)
	}
	return n, err
}
