package nats

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Remove makes the servers of the cluster forget one that has ended for good. Until then it counts: of three servers and one more that
// has ended, three have to run. A server that is removed and runs has to begin again to be in the cluster,
// and counts again five minutes after it was removed.
func (s *Server) Remove(ctx context.Context, node string) error {
	nc, err := s.system()
	if err != nil {
		return err
	}
	defer nc.Close()
	ask, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Peer: peerID(node)})
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		try, stop := context.WithTimeout(ctx, removeTry)
		answer, err := nc.RequestWithContext(try, server.JSApiRemoveServer, ask)
		stop()
		var said server.JSApiMetaServerRemoveResponse
		if err == nil {
			err = json.Unmarshal(answer.Data, &said)
		}
		busy := said.Error != nil && said.Error.ErrCode == uint16(server.JSClusterServerMemberChangeInflightErr)
		if (err != nil || busy) && ctx.Err() == nil && !final(err) { // the servers may be choosing a leader, or still be at an attempt before
			select {
			case <-time.After(10 * settle):
				continue
			case <-ctx.Done():
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("remove server %s: %w", node, err)
		case said.Error == nil:
			return nil
		case said.Error.ErrCode != uint16(server.JSClusterServerNotMemberErr):
			return fmt.Errorf("remove server %s: %s", node, said.Error.Description)
		case again: // by an attempt whose answer was lost
			return nil
		}
		return fmt.Errorf("%s is not in the cluster", node)
	}
}

// Members returns the names of the servers that count, also of those that have ended and were not removed: until ctx ends, if no leader
// answers. The leader does not know the name of one that ended before the leader began.
func (s *Server) Members(ctx context.Context) ([]string, error) {
	nc, err := s.system()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	var answer *nats.Msg
	for wait := 10 * settle; ; wait *= 2 { // nothing keeps a request for the next leader
		try, stop := context.WithTimeout(ctx, wait)
		answer, err = nc.RequestWithContext(try, "$SYS.REQ.SERVER.PING.JSZ", []byte(`{"leader_only":true}`))
		if err != nil && ctx.Err() == nil && !final(err) {
			<-try.Done() // without servers of JetStream, NATS says so at once
			stop()
			continue
		}
		stop()
		break
	}
	if err != nil {
		return nil, fmt.Errorf("list the servers: %w", err)
	}
	var said struct {
		Data struct {
			Meta struct {
				Leader   string
				Replicas []struct{ Name, Peer string }
			} `json:"meta_cluster"`
		}
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil || said.Data.Meta.Leader == "" {
		return nil, fmt.Errorf("list the servers: the leader answered %.200q", answer.Data)
	}
	names := []string{said.Data.Meta.Leader}
	for _, r := range said.Data.Meta.Replicas {
		if peerID(r.Name) == r.Peer { // else the name is a text
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// system connects to the account of the servers.
func (s *Server) system() (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(dialer{s}), nats.UserInfo(systemUser, s.options.Users[1].Password))
}

// removeTry bounds an attempt of Remove. NATS leaves it without an answer while it has no leader.
const removeTry = time.Second

// peerID returns the id of a server among those of JetStream, which is made of its name.
func peerID(name string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(name))
	id := sum[:8]
	for i, b := range id {
		id[i] = digits[int(b)%len(digits)]
	}
	return string(id)
}
