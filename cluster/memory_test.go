package cluster_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/suite"
)

func TestMemory(t *testing.T) {
	suite.State(t, func(*testing.T) []cluster.State { return []cluster.State{new(cluster.Memory)} })
	suite.Nodes(t, func(*testing.T) ([]cluster.State, []cluster.Bus) {
		m := new(cluster.Memory)
		return []cluster.State{m, m, m}, []cluster.Bus{m, m, m}
	})
	suite.Bus(t, func(*testing.T) []cluster.Bus { return []cluster.Bus{new(cluster.Memory)} })
}
