// Package cluster makes one server of several processes. A [Node] in front of each forwards requests of sessions to the process
// that has them. It stands on what the nodes share: a [State] with small values, which one node at a time
// changes; a [Bus], over which a node speaks with another one; and a [Lease], for what only one node may do.
//
// [Memory] is a State and a Bus for the nodes of one process: for a single node, and for tests. Package cluster/nats has them in NATS
// JetStream, which runs in the nodes themselves or elsewhere.
//
// # Guarantees
//
//   - A change of a State has happened on a majority of its servers when Put or Delete returns nil. If the error is
//     [ErrConflict], it has not happened and never will. After any other error it may have happened.
//   - Versions grow with each change, whatever the key. The version at which a Lease began is therefore a fencing number:
//     whoever keeps the greatest one that it saw, and refuses smaller ones, obeys no holder that has lost its lease.
//   - The bytes of a connection of a Bus arrive in order and once, or the connection ends with an error.
//   - A session whose server keeps it in the State ([Node.Sessions]) goes on at another node when its node has ended: the first request
//     to another node takes it, and no two nodes have it. A node that may have lost its sessions answers lists and reads
//     of theirs, if the server keeps them in the State, and refuses everything else (503).
//     A request that may have reached a node is not sent again.
//   - What the stream of a call of such a session has carried is found at the node that goes on with the session ([Node.Events]), but what
//     came right before the death of its node.
//   - The result of a task whose server keeps it in the State ([Node.Tasks]) is found at another node when its node has ended.
//   - A question that one node has asked in a result can be answered at any of them that reach a majority ([Node.Share]).
//   - What is published arrives at most once. A subscriber that is slow, or cut off for a while, misses some. Updates of
//     resources, which a server tells those of the other nodes ([Node.Share]), are published.
//
// Keys, names of nodes and topics consist of letters, digits, "-", "_", "=" and, between other characters, ".".
package cluster

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of a State and a Bus. They come wrapped, with the key or the node.
var (
	// ErrNotFound says that a State has no entry for a key.
	ErrNotFound = errors.New("cluster: not found")
	// ErrConflict says that the entry of a key has another version than the given one, because somebody else changed it.
	ErrConflict = errors.New("cluster: changed by somebody else")
	// ErrNoNode says that no node of the given name listens, or that it has died.
	ErrNoNode = errors.New("cluster: node does not answer")
	// ErrOwner says that a node may have lost its sessions to others.
	ErrOwner = errors.New("cluster: the owner has changed: this node is cut off from the others, which may have its sessions")
)

// Check returns an error if name cannot be a key, a topic or the name of a node. The error says what it is.
func Check(what, name string) error {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" {
			return fmt.Errorf("%s %q: empty, or an empty part beside a dot", what, name)
		}
		for _, r := range part {
			if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '=') {
				return fmt.Errorf("%s %q: %q is not a letter, a digit or one of -_=", what, name, r)
			}
		}
	}
	if len(name) > maxName {
		return fmt.Errorf("%s %.20q…: %d characters, at most %d are allowed", what, name, len(name), maxName)
	}
	return nil
}

// maxName bounds keys and names, in bytes.
const maxName = 200

// MaxValue bounds the values of a State, in bytes.
const MaxValue = 512 << 10
