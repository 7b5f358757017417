package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// patience is how long a round waits for its last event.
const patience = 30 * time.Second

// runWatch changes one key again and again and waits each time until every watch has told it.
func runWatch(ctx context.Context, options *Options) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, err := connectAll(ctx, options)
	defer closeAll(clients)
	if err != nil {
		return nil, err
	}
	writer, err := connect(ctx, options, 0)
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	fan := &Fan{options: options, writer: writer, events: make(chan time.Time, options.Watches), key: options.Root}
	if _, err := writer.Put(ctx, fan.key, ""); err != nil {
		return nil, err
	}
	if err := fan.watch(ctx, clients); err != nil {
		return nil, err
	}
	return fan.rounds(ctx)
}

// Fan is one key and all that watch it.
type Fan struct {
	options *Options
	writer  *clientv3.Client
	key     string
	events  chan time.Time
	lost    atomic.Int64
	times   map[string]*Histogram
}

func (f *Fan) watch(ctx context.Context, clients []*clientv3.Client) error {
	for number := range f.options.Watches {
		// WithCreatedNotify answers once the member has the watch.
		events := clients[number%len(clients)].Watch(ctx, f.key, clientv3.WithCreatedNotify())
		select {
		case made := <-events:
			if !made.Created {
				return fmt.Errorf("watch %d was not made: %v", number, made.Err())
			}
		case <-time.After(patience):
			return fmt.Errorf("watch %d was not made in time", number)
		}
		go func() {
			for range events {
				f.events <- time.Now()
			}
			f.lost.Add(1)
		}()
	}
	return nil
}

func (f *Fan) rounds(ctx context.Context) (*Report, error) {
	f.times = map[string]*Histogram{"reply": {}, "first event": {}, "middle event": {}, "last event": {}}
	data := content(f.options.Size, 'z')
	warm := time.Now().Add(f.options.Warmup)
	var before Moment
	var rounds uint64
	for end := warm.Add(f.options.Duration); time.Now().Before(end); {
		if before.at.IsZero() && !time.Now().Before(warm) {
			usage, err := usageNow(f.options)
			if err != nil {
				return nil, err
			}
			before = Moment{usage, time.Now()}
		}
		measured := !before.at.IsZero()
		if err := f.fire(ctx, data, measured); err != nil {
			return nil, err
		}
		if measured {
			rounds++
		}
	}
	after, err := usageNow(f.options)
	if err != nil {
		return nil, err
	}
	report := newReport(f.options, rounds, time.Since(before.at).Seconds(), newErrors(), before.Usage, after)
	for name, histogram := range f.times {
		report.addLatency(name, histogram)
	}
	return report, nil
}

func (f *Fan) fire(ctx context.Context, data string, measured bool) error {
	sent := time.Now()
	replied := make(chan error, 1)
	var reply time.Duration
	go func() {
		_, err := f.writer.Put(ctx, f.key, data)
		reply = time.Since(sent)
		replied <- err
	}()
	times := make([]time.Duration, 0, f.options.Watches)
	limit := time.After(patience)
	for len(times) < f.options.Watches {
		select {
		case at := <-f.events:
			times = append(times, at.Sub(sent))
		case <-limit:
			return fmt.Errorf("%d of %d events in time, %d watches lost", len(times), f.options.Watches, f.lost.Load())
		}
	}
	if err := <-replied; err != nil {
		return err
	}
	if !measured {
		return nil
	}
	f.times["reply"].Record(reply)
	first, middle, last := spread(times)
	f.times["first event"].Record(first)
	f.times["middle event"].Record(middle)
	f.times["last event"].Record(last)
	return nil
}
