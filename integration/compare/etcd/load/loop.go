package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Measure is what all workers of a run share.
type Measure struct {
	from, until time.Time
	left        atomic.Int64
	bounded     bool
	read, write Histogram
	errors      *Errors
}

// runLoop keeps the wanted number of requests of every connection in flight.
func runLoop(ctx context.Context, options *Options, loop Loop) (*Report, error) {
	clients, err := connectAll(ctx, options)
	defer closeAll(clients)
	if err != nil {
		return nil, err
	}
	if loop.needsKeys {
		if err := fill(ctx, clients[0], options); err != nil {
			return nil, fmt.Errorf("cannot make the keys: %w", err)
		}
	}
	report, err := measure(ctx, options, loop, clients)
	if err == nil && !options.Keep {
		_, err = clients[0].Delete(ctx, options.Root, clientv3.WithPrefix())
	}
	return report, err
}

func measure(ctx context.Context, options *Options, loop Loop, clients []*clientv3.Client) (*Report, error) {
	keys := make([]string, options.Keys)
	for index := range keys {
		keys[index] = key(options.Root, index)
	}
	from := time.Now().Add(options.Warmup)
	shared := &Measure{from: from, until: from.Add(options.Duration), bounded: options.Requests > 0, errors: newErrors()}
	shared.left.Store(options.Requests)
	data := content(options.Size, 'y')
	var workers sync.WaitGroup
	for number := range options.Connections * options.Depth {
		worker := &Worker{
			options: options, client: clients[number%len(clients)], keys: keys, data: data,
			random: rand.New(rand.NewPCG(7, uint64(number))), prefix: fmt.Sprintf("%s/c%d", options.Root, number),
		}
		workers.Go(func() { shared.loop(ctx, worker, loop) })
	}
	ended := make(chan struct{})
	go func() { workers.Wait(); close(ended) }()
	before, after, err := around(options, shared, ended)
	<-ended
	if err != nil {
		return nil, err
	}
	seconds := after.at.Sub(before.at).Seconds()
	operations := shared.read.total.Load() + shared.write.total.Load()
	report := newReport(options, operations, seconds, shared.errors, before.Usage, after.Usage)
	report.addLatency("read", &shared.read)
	report.addLatency("write", &shared.write)
	return report, nil
}

// Moment is usage and when it was looked at.
type Moment struct {
	Usage
	at time.Time
}

// around looks at the usage where measuring begins and ends; a run with a number of requests ends with the last.
func around(options *Options, shared *Measure, ended <-chan struct{}) (before, after Moment, err error) {
	time.Sleep(time.Until(shared.from))
	if before.Usage, err = usageNow(options); err != nil {
		return before, after, err
	}
	before.at = time.Now()
	select {
	case <-ended:
	case <-time.After(time.Until(shared.until)):
	}
	after.Usage, err = usageNow(options)
	after.at = time.Now()
	return before, after, err
}

func (m *Measure) loop(ctx context.Context, worker *Worker, loop Loop) {
	for {
		start := time.Now()
		if !start.Before(m.until) || m.bounded && m.left.Add(-1) < 0 {
			return
		}
		read, err := loop.send(ctx, worker)
		now := time.Now()
		switch {
		case err != nil:
			m.errors.add(err)
		case now.Before(m.from) || !now.Before(m.until):
		case read:
			m.read.Record(now.Sub(start))
		default:
			m.write.Record(now.Sub(start))
		}
	}
}
