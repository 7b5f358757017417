package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Values are kept to 1 part in 1024, as far as about two minutes in nanoseconds.
const (
	mantissaBits = 10
	exponents    = 28
)

// Histogram counts latencies; any number of goroutines may record.
type Histogram struct {
	counts [exponents << mantissaBits]atomic.Uint64
	total  atomic.Uint64
	sum    atomic.Uint64
}

func slot(ns uint64) int {
	if ns < 1<<mantissaBits {
		return int(ns)
	}
	exponent := bits.Len64(ns) - mantissaBits
	if exponent >= exponents {
		return exponents<<mantissaBits - 1
	}
	// The upper half of each step is used: the highest bit is always set.
	return exponent<<mantissaBits + int(ns>>exponent)
}

func value(slot int) uint64 {
	exponent := slot >> mantissaBits
	return uint64(slot&(1<<mantissaBits-1)) << exponent
}

// Record adds one latency.
func (h *Histogram) Record(latency time.Duration) {
	h.counts[slot(uint64(latency))].Add(1)
	h.total.Add(1)
	h.sum.Add(uint64(latency))
}

// Latency is a histogram in microseconds.
type Latency struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	Max   float64 `json:"max_us"`
}

// Latency sums up; nil when nothing was recorded.
func (h *Histogram) Latency() *Latency {
	total := h.total.Load()
	if total == 0 {
		return nil
	}
	at := func(quantile float64) float64 {
		wanted, seen := uint64(quantile*float64(total)+0.5), uint64(0)
		last := 0
		for index := range h.counts {
			count := h.counts[index].Load()
			if count == 0 {
				continue
			}
			seen, last = seen+count, index
			if seen >= max(wanted, 1) {
				break
			}
		}
		return float64(value(last)) / 1000
	}
	return &Latency{
		Count: total, Mean: float64(h.sum.Load()) / float64(total) / 1000,
		P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: at(1),
	}
}
