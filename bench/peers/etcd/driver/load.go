package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type outcome struct {
	// Nanoseconds of each put that was acknowledged while measured.
	latencies []int64
	// How long was measured.
	seconds float64
	// Puts acknowledged in all, warm-up included.
	acknowledged int64
}

var errInterrupted = errors.New("interrupted; nothing was measured")

// load runs a closed loop: every client sends its next put when the last is acknowledged.
func load(ctx context.Context, o options, endpoints []string) (outcome, error) {
	connections := make([]*clientv3.Client, o.conns)
	for i := range connections {
		connection, err := connect(endpoints[i%len(endpoints) : i%len(endpoints)+1])
		if err != nil {
			return outcome{}, fmt.Errorf("connection %d of %d: %w", i+1, o.conns, err)
		}
		defer connection.Close()
		connections[i] = connection
	}
	puts, cancel := context.WithCancel(ctx)
	defer cancel()
	value := make([]byte, o.valueBytes)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	begun := time.Now()
	measureFrom := begun.Add(time.Duration(o.warmup) * time.Second)
	measureTo := measureFrom.Add(time.Duration(o.seconds) * time.Second)
	var next, acknowledged atomic.Int64
	samples, failures := make([][]int64, o.clients), make([]error, o.clients)
	var clients sync.WaitGroup
	for i := range o.clients {
		clients.Add(1)
		go func() {
			defer clients.Done()
			connection := connections[i%len(connections)]
			for sent := time.Now(); sent.Before(measureTo); {
				key := make([]byte, 8)
				binary.BigEndian.PutUint64(key, uint64(next.Add(1)%keyCount))
				key[0] = 'k'
				if _, err := connection.Put(puts, string(key), string(value)); err != nil {
					failures[i] = err
					cancel()
					return
				}
				acknowledged.Add(1)
				answered := time.Now()
				if !answered.Before(measureFrom) && answered.Before(measureTo) {
					samples[i] = append(samples[i], int64(answered.Sub(sent)))
				}
				sent = answered
			}
		}()
	}
	clients.Wait()
	if ctx.Err() != nil {
		return outcome{}, errInterrupted
	}
	// The others were cancelled because one failed: that one says why.
	for _, failure := range failures {
		if failure != nil && status.Code(failure) != codes.Canceled && !errors.Is(failure, context.Canceled) {
			return outcome{}, fmt.Errorf("a put failed: %w", failure)
		}
	}
	latencies := slices.Concat(samples...)
	if len(latencies) == 0 {
		return outcome{}, fmt.Errorf("no put was acknowledged within %d s; measure longer with --seconds", o.seconds)
	}
	return outcome{latencies: latencies, seconds: float64(o.seconds), acknowledged: acknowledged.Load()}, nil
}

type shape struct{ mean, p50, p99, p999, max float64 }

// shapeOf is exact, from every sample, in microseconds; it sorts them.
func shapeOf(ns []int64) shape {
	slices.Sort(ns)
	sum := 0.0
	for _, sample := range ns {
		sum += float64(sample)
	}
	// The smallest sample that at least this share do not exceed.
	rank := func(share float64) float64 {
		return round(float64(ns[max(int(math.Ceil(share*float64(len(ns))))-1, 0)]) / 1e3)
	}
	return shape{mean: round(sum / float64(len(ns)) / 1e3), p50: rank(0.5), p99: rank(0.99), p999: rank(0.999), max: rank(1)}
}

func round(value float64) float64 { return math.Round(value*10) / 10 }
