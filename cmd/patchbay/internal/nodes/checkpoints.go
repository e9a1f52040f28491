package nodes

import (
	"context"
	"errors"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cluster"
)

// checkpointTopic has the checkpoints of the audit logs of all nodes.
const checkpointTopic = "gateway.audit"

// exchange gives the checkpoints of the audit log to the other nodes, and notes theirs in it, until ctx ends.
func exchange(ctx context.Context, bus cluster.Bus, state cluster.State, log *audit.Log) (run func(), err error) {
	others := &audit.Others{
		Log:     log,
		Publish: func(ctx context.Context, message []byte) error { return bus.Publish(ctx, checkpointTopic, message) },
		Known: func(ctx context.Context, node string) (bool, error) {
			if cluster.Check("node", node) != nil {
				return false, nil
			}
			_, err := state.Get(ctx, nodesKey+"."+node)
			if errors.Is(err, cluster.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
	}
	stop, err := bus.Subscribe(checkpointTopic, others.Receive)
	if err != nil {
		return nil, err
	}
	return func() {
		defer stop()
		others.Run(ctx)
	}, nil
}
