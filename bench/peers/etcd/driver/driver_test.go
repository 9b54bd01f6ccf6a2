package main

import (
	"strings"
	"testing"
)

func TestShapeOfKnownSamples(t *testing.T) {
	samples := make([]int64, 1_000)
	for i := range samples {
		samples[len(samples)-1-i] = int64(i+1) * 1_000
	}
	if got, wanted := shapeOf(samples), (shape{500.5, 500, 990, 999, 1_000}); got != wanted {
		t.Errorf("got %v, wanted %v", got, wanted)
	}
	if got := shapeOf([]int64{7_000}); got.p50 != 7 || got.p999 != 7 {
		t.Errorf("one sample is every percentile, got %v", got)
	}
}

func TestWrongResultsAreVoid(t *testing.T) {
	before := state{leader: "a", term: 2, revision: 1}
	after := state{leader: "a", term: 2, revision: 11, hashes: []uint32{5, 5, 5}}
	if err := judge(before, after, 10, syncs{count: 3}); err != nil {
		t.Errorf("a right result is refused: %v", err)
	}
	wrong := map[string]func() error{
		"hold 10":            func() error { return judge(before, after, 11, syncs{count: 3}) },
		"not durable":        func() error { return judge(before, after, 10, syncs{}) },
		"the leader changed": func() error { return judge(state{leader: "b", term: 2, revision: 1}, after, 10, syncs{count: 3}) },
		"hashes are": func() error {
			differing := after
			differing.hashes = []uint32{5, 5, 6}
			return judge(before, differing, 10, syncs{count: 3})
		},
	}
	for words, verdict := range wrong {
		if err := verdict(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("wanted a complaint with '%s', got %v", words, err)
		}
	}
}
