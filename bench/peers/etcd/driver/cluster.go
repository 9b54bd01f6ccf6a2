package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

type member struct {
	endpoint string
	log      string
	process  *exec.Cmd
}

// Reached only when something is wrong.
const startLimit = 60 * time.Second

// cluster is etcd with every setting that bears on speed at its default, one process and data folder a member, on loopback.
type cluster struct {
	folder  string
	members []member
}

func startCluster(ctx context.Context, o options) (*cluster, error) {
	folder, err := os.MkdirTemp(o.dir, "etcd-peer-")
	if err != nil {
		return nil, badInput{fmt.Sprintf("no folder can be made in %s (%v); check that it is yours and its disk has space.", o.dir, err)}
	}
	c := &cluster{folder: folder}
	ports, err := freePorts(2 * o.members)
	if err == nil {
		err = c.startMembers(ctx, o, ports)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) startMembers(ctx context.Context, o options, ports []int) error {
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	peers := make([]string, o.members)
	for i := range peers {
		peers[i] = fmt.Sprintf("m%d=%s", i, url(ports[2*i+1]))
	}
	for i := range o.members {
		if ctx.Err() != nil {
			return errInterrupted
		}
		client, peer := url(ports[2*i]), url(ports[2*i+1])
		log, err := os.Create(filepath.Join(c.folder, fmt.Sprintf("m%d.log", i)))
		if err != nil {
			return err
		}
		process := exec.Command(o.etcd, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(c.folder, fmt.Sprintf("m%d", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new", "--log-level", "error")
		process.Stdout, process.Stderr = log, log
		process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		err = process.Start()
		log.Close()
		if err != nil {
			return fmt.Errorf("etcd does not start (%w); remove the target folder beside run.sh and run it again", err)
		}
		c.members = append(c.members, member{endpoint: client, log: log.Name(), process: process})
	}
	return nil
}

// Kept open together, so that they differ; given back before the members take them.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free port on loopback: %w", err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// stop ends the members that this program started, each by its own handle, and removes their folders.
func (c *cluster) stop() error {
	for _, member := range c.members {
		// One that is gone already is what is wanted.
		_ = member.process.Process.Kill()
		_ = member.process.Wait()
	}
	c.members = nil
	return os.RemoveAll(c.folder)
}

func (c *cluster) endpoints() []string {
	endpoints := make([]string, len(c.members))
	for i, member := range c.members {
		endpoints[i] = member.endpoint
	}
	return endpoints
}

// explained adds the last lines that the members wrote: their folder will be gone when the error is read.
func (c *cluster) explained(err error) error {
	for i, member := range c.members {
		text, readError := os.ReadFile(member.log)
		if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); readError == nil && lines[0] != "" {
			err = fmt.Errorf("%w\nm%d wrote last: %s", err, i, strings.Join(lines[max(0, len(lines)-3):], "\n"))
		}
	}
	return err
}

func connect(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		DialTimeout: startLimit,
		// What fails comes back as an error.
		Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
}

// state is what a cluster says of itself when nobody writes.
type state struct {
	version  string
	leader   string
	term     uint64
	revision int64
	hashes   []uint32
}

// waitForLeader waits until every member answers a read that needs a majority.
func (c *cluster) waitForLeader(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	found, err := c.state(ctx)
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return state{}, errInterrupted
	}
	if err != nil {
		return state{}, fmt.Errorf("the members did not elect a leader within %s (%w); look whether something else keeps the machine busy", startLimit, err)
	}
	return found, nil
}

func (c *cluster) state(ctx context.Context) (state, error) {
	var found state
	for _, member := range c.members {
		client, err := connect([]string{member.endpoint})
		if err != nil {
			return state{}, err
		}
		defer client.Close()
		// A linearizable read returns once this member has applied all that was committed before.
		if _, err := client.Get(ctx, "k", clientv3.WithCountOnly(), clientv3.WithPrefix()); err != nil {
			return state{}, err
		}
		status, err := client.Status(ctx, member.endpoint)
		if err != nil {
			return state{}, err
		}
		hash, err := client.HashKV(ctx, member.endpoint, 0)
		if err != nil {
			return state{}, err
		}
		if status.Leader == status.Header.MemberId {
			found.leader = member.endpoint
		}
		if found.version == "" {
			found.version, found.term, found.revision = status.Version, status.RaftTerm, status.Header.Revision
		}
		if status.RaftTerm != found.term || status.Header.Revision != found.revision {
			return state{}, fmt.Errorf("members differ: term %d and %d, revision %d and %d",
				found.term, status.RaftTerm, found.revision, status.Header.Revision)
		}
		found.hashes = append(found.hashes, hash.Hash)
	}
	if found.leader == "" {
		return state{}, errors.New("no member says that it leads")
	}
	return found, nil
}

// syncs is how often and how long the leader synced its write-ahead log.
type syncs struct {
	count  float64
	meanUs float64
}

// verify fails unless every member holds exactly the acknowledged puts, the same on all, under the leader of the beginning.
func (c *cluster) verify(ctx context.Context, before state, acknowledged int64) (syncs, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	after, err := c.state(ctx)
	if err != nil {
		return syncs{}, fmt.Errorf("the members cannot be compared: %w", err)
	}
	synced, err := walSyncs(ctx, before.leader)
	if err != nil {
		return syncs{}, err
	}
	return synced, judge(before, after, acknowledged, synced)
}

func judge(before, after state, acknowledged int64, synced syncs) error {
	if after.leader != before.leader || after.term != before.term {
		return fmt.Errorf("the leader changed during the run (term %d to %d); the machine is too busy to measure on", before.term, after.term)
	}
	if written := after.revision - before.revision; written != acknowledged {
		return fmt.Errorf("the result differs: %d puts were acknowledged and the members hold %d; the figures are void", acknowledged, written)
	}
	for _, hash := range after.hashes {
		if hash != after.hashes[0] {
			return fmt.Errorf("the result differs: the members' hashes are %d; the figures are void", after.hashes)
		}
	}
	if acknowledged > 0 && synced.count == 0 {
		return errors.New("the leader counted no sync of its log, so the puts were not durable; the figures are void")
	}
	return nil
}

// walSyncs reads the leader's own counters.
func walSyncs(ctx context.Context, endpoint string) (syncs, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/metrics", nil)
	if err != nil {
		return syncs{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return syncs{}, fmt.Errorf("the leader does not tell its counters: %w", err)
	}
	defer response.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = number
		}
	}
	const name = "etcd_disk_wal_fsync_duration_seconds_"
	count := values[name+"count"]
	return syncs{count: count, meanUs: values[name+"sum"] / max(count, 1) * 1e6}, nil
}
