// Runs etcd beside Walras: starts members, puts values from many clients, checks what is left in them and prints the figures.
// ../README.md says what is measured and how. Start reading at run, then load.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// What the caller gave cannot be run; the message says what to do instead.
type badInput struct{ message string }

func (b badInput) Error() string { return b.message }

type options struct {
	etcd       string
	dir        string
	members    int
	clients    int
	conns      int
	valueBytes int
	seconds    int
	warmup     int
	target     string
}

// Keys are eight bytes, as in etcd's own benchmark; this many, written in turn.
const keyCount = 100_000

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("run.sh", flag.ContinueOnError)
	flags.StringVar(&o.etcd, "etcd", "", "the server's program; run.sh gives it")
	flags.StringVar(&o.dir, "dir", "", "an existing folder on the disk to be measured; a subfolder is made in it and removed again")
	flags.IntVar(&o.members, "members", 3, "members of the cluster: 1, 3, 5 or 7")
	flags.IntVar(&o.clients, "clients", 1, "clients, each with one put outstanding")
	flags.IntVar(&o.conns, "conns", 0, "connections that the clients share; 0 is one each, at most 100")
	flags.IntVar(&o.valueBytes, "value-bytes", 64, "bytes of a value")
	flags.IntVar(&o.seconds, "seconds", 10, "seconds measured")
	flags.IntVar(&o.warmup, "warmup", 2, "seconds before them, not measured")
	flags.StringVar(&o.target, "target", "leader", "leader or all: the members that clients connect to")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, badInput{err.Error() + "; run.sh --help lists the options."}
	}
	if flags.NArg() > 0 {
		return o, badInput{fmt.Sprintf("'%s' is no option; run.sh --help lists them.", flags.Arg(0))}
	}
	return o, o.check()
}

func (o *options) check() error {
	numbers := []struct {
		name            string
		value, min, max int
	}{
		{"--clients", o.clients, 1, 10_000},
		{"--conns", o.conns, 0, 10_000},
		{"--value-bytes", o.valueBytes, 1, 1 << 20},
		{"--seconds", o.seconds, 1, 3_600},
		{"--warmup", o.warmup, 0, 3_600},
	}
	for _, number := range numbers {
		if number.value < number.min || number.value > number.max {
			return badInput{fmt.Sprintf("%s must be from %d to %d, and %d is not.", number.name, number.min, number.max, number.value)}
		}
	}
	if o.members < 1 || o.members > 7 || o.members%2 == 0 {
		return badInput{fmt.Sprintf("--members must be 1, 3, 5 or 7, and %d is not.", o.members)}
	}
	if o.target != "leader" && o.target != "all" {
		return badInput{fmt.Sprintf("--target must be leader or all, and '%s' is neither.", o.target)}
	}
	if o.conns > o.clients {
		return badInput{fmt.Sprintf("--conns may be at most --clients, which is %d: a client uses one connection.", o.clients)}
	}
	if o.conns == 0 {
		o.conns = min(o.clients, 100)
	}
	if o.dir == "" {
		return badInput{"etcd writes to disk; name an existing folder on the disk to be measured with --dir DIR."}
	}
	if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
		return badInput{fmt.Sprintf("--dir %s is not a folder; make it first (mkdir -p), on the disk to be measured.", o.dir)}
	}
	return nil
}

// report is the last line printed.
type report struct {
	Peer       string  `json:"peer"`
	Version    string  `json:"version"`
	Members    int     `json:"members"`
	Clients    int     `json:"clients"`
	Conns      int     `json:"conns"`
	Target     string  `json:"target"`
	ValueBytes int     `json:"value_bytes"`
	Seconds    float64 `json:"seconds"`
	WarmupS    int     `json:"warmup_s"`
	Sync       bool    `json:"sync"`
	Ops        int     `json:"ops"`
	OpsPerS    float64 `json:"ops_per_s"`
	MeanUs     float64 `json:"mean_us"`
	P50Us      float64 `json:"p50_us"`
	P99Us      float64 `json:"p99_us"`
	P999Us     float64 `json:"p999_us"`
	MaxUs      float64 `json:"max_us"`
	WalSyncUs  float64 `json:"wal_sync_mean_us"`
	Check      string  `json:"check"`
}

func run(ctx context.Context, o options) (result report, err error) {
	cluster, err := startCluster(ctx, o)
	if err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, cluster.stop()) }()
	before, err := cluster.waitForLeader(ctx)
	if err != nil {
		return report{}, cluster.explained(err)
	}
	endpoints := cluster.endpoints()
	if o.target == "leader" {
		endpoints = []string{before.leader}
	}
	fmt.Printf("etcd %s: %d members, %d clients on %d connections to %s\n", before.version, o.members, o.clients, o.conns, o.target)
	done, err := load(ctx, o, endpoints)
	if err != nil {
		return report{}, cluster.explained(err)
	}
	syncs, err := cluster.verify(ctx, before, done.acknowledged)
	if err != nil {
		return report{}, cluster.explained(err)
	}
	shape := shapeOf(done.latencies)
	return report{
		Peer: "etcd", Version: before.version, Members: o.members, Clients: o.clients, Conns: o.conns, Target: o.target,
		ValueBytes: o.valueBytes, Seconds: round(done.seconds), WarmupS: o.warmup, Sync: true,
		Ops: len(done.latencies), OpsPerS: round(float64(len(done.latencies)) / done.seconds),
		MeanUs: shape.mean, P50Us: shape.p50, P99Us: shape.p99, P999Us: shape.p999, MaxUs: shape.max,
		WalSyncUs: round(syncs.meanUs), Check: "equal",
	}, nil
}

func main() {
	// Members are told to die with the thread that started them; so this one has to stay as long as the program does.
	runtime.LockOSThread()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	os.Exit(finish(ctx, os.Args[1:]))
}

func finish(ctx context.Context, arguments []string) int {
	o, err := parse(arguments)
	var result report
	if err == nil {
		result, err = run(ctx, o)
	}
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "etcd peer: %v\n", err)
		if errors.As(err, &badInput{}) {
			return 2
		}
		return 1
	}
	line, err := json.Marshal(result)
	if err != nil {
		fmt.Fprintf(os.Stderr, "etcd peer: a figure is no number (%v); measure longer.\n", err)
		return 1
	}
	fmt.Println(string(line))
	return 0
}
