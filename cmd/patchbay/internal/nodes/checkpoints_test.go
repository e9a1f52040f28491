package nodes

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cluster"
)

// Three nodes note each other's checkpoints, and not those of a name that is not in the cluster. The log of one that is begun anew
// by somebody who has its key is found with the other two.
func TestCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, dir := new(cluster.Memory), t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		key, err := audit.LoadKey(filepath.Join(dir, "key"))
		if err != nil {
			t.Fatal(err)
		}
		var logs []*audit.Log
		files := []audit.NodeLog{}
		for _, name := range []string{"n1", "n2", "n3", "n4"} {
			if name != "n4" {
				if _, err := shared.Put(ctx, nodesKey+"."+name, []byte("{}"), 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, name+".jsonl")
			log, err := audit.Open(path, &audit.Options{Key: key, Node: name, Sync: audit.SyncNone})
			if err != nil {
				t.Fatal(err)
			}
			run, err := exchange(ctx, shared, shared, log)
			if err != nil {
				t.Fatal(err)
			}
			running.Go(run)
			logs, files = append(logs, log), append(files, audit.NodeLog{Files: []string{path}})
		}
		for range 6 {
			for _, log := range logs {
				if err := log.Write(ctx, audit.Entry{Kind: audit.CallEnd, Outcome: "ok"}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
		}
		time.Sleep(time.Minute)
		stop()
		running.Wait()
		for _, log := range logs {
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
		reports, err := audit.VerifyTogether(files, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reports[:3] {
			if !r.Whole() || r.Agreed < 6 {
				t.Errorf("n%d: %+v", i+1, r)
			}
		}
		if r := reports[3]; r.Agreed != 0 {
			t.Errorf("n4 is not in the cluster, and was noted: %+v", r)
		}

		files[1].Files = []string{filepath.Join(dir, "again.jsonl")}
		log, err := audit.Open(files[1].Files[0], &audit.Options{Key: key, Node: "n2", Sync: audit.SyncNone})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if reports, err = audit.VerifyTogether(files[:3], nil); err != nil || len(reports[1].Faults) != 2 || reports[1].Faults[0].Kind != audit.Replaced {
			t.Errorf("n2 with another log: %+v, %v", reports[1], err)
		}
	})
}
