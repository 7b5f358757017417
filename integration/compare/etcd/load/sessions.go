package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// leaseSeconds is the life of a lease without a sign of its client, as long as the session timeout of `quenda bench`.
const leaseSeconds = 30

// Held is what stands for a session: a connection of its own and a lease that it keeps alive.
type Held struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
}

// runSessions opens them, keeps them idle, and closes them.
func runSessions(ctx context.Context, options *Options) (*Report, error) {
	errors := newErrors()
	sessions := make([]*Held, options.Connections)
	before, err := usageNow(options)
	if err != nil {
		return nil, err
	}
	var opened, closed Histogram
	opening := each(len(sessions), errors, &opened, func(number int) (err error) {
		sessions[number], err = openSession(ctx, options, number)
		return err
	})
	idle, err := usageNow(options)
	if err != nil {
		return nil, err
	}
	time.Sleep(options.Duration)
	full, err := usageNow(options)
	if err != nil {
		return nil, err
	}
	closing := each(len(sessions), errors, &closed, func(number int) error {
		if sessions[number] == nil {
			return fmt.Errorf("session %d was never open", number)
		}
		return sessions[number].close(ctx)
	})
	after, err := usageNow(options)
	if err != nil {
		return nil, err
	}
	// The time between opening and closing costs nothing that an opened and closed session is to blame for.
	after.server -= full.server - idle.server
	after.client -= full.client - idle.client
	after.resident = full.resident
	report := newReport(options, opened.total.Load(), opening, errors, before, after)
	report.ClosedSecond = float64(closed.total.Load()) / closing
	report.addLatency("open", &opened)
	report.addLatency("close", &closed)
	return report, nil
}

// each does something for every number, some at a time; a failure costs one. Returns the seconds that it took.
func each(count int, errors *Errors, times *Histogram, work func(int) error) float64 {
	start := time.Now()
	group := new(errgroup.Group)
	group.SetLimit(opening)
	for number := range count {
		group.Go(func() error {
			start := time.Now()
			if err := work(number); err != nil {
				errors.add(err)
			} else {
				times.Record(time.Since(start))
			}
			return nil
		})
	}
	_ = group.Wait()
	return time.Since(start).Seconds()
}

func openSession(ctx context.Context, options *Options, number int) (*Held, error) {
	host := options.Hosts[number%len(options.Hosts)]
	client, err := clientv3.New(quiet(ctx, host))
	if err != nil {
		return nil, err
	}
	granted, err := client.Grant(ctx, leaseSeconds)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	alive, err := client.KeepAlive(ctx, granted.ID)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	go func() {
		for range alive {
		}
	}()
	return &Held{client, granted.ID}, nil
}

func (h *Held) close(ctx context.Context) error {
	_, err := h.client.Revoke(ctx, h.lease)
	if closed := h.client.Close(); err == nil {
		err = closed
	}
	return err
}
