package main

import (
	"fmt"
	"os"
	"sync"
)

// ServerUse is what the members used over the measured time, together.
type ServerUse struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	CPUPerOperation float64 `json:"cpu_us_per_operation"`
	ResidentAtStart uint64  `json:"resident_bytes_at_start"`
	ResidentAtEnd   uint64  `json:"resident_bytes_at_end"`
}

// Report has the names of `quenda bench --json`.
type Report struct {
	Settings         *Options            `json:"settings"`
	Connections      int                 `json:"connections"`
	Seconds          float64             `json:"seconds"`
	Operations       uint64              `json:"operations"`
	OperationsSecond float64             `json:"operations_per_second"`
	ClosedSecond     float64             `json:"closed_per_second,omitempty"`
	Errors           map[string]uint64   `json:"errors"`
	Latency          map[string]*Latency `json:"latency"`
	ClientCPU        float64             `json:"client_cpu_seconds"`
	Server           *ServerUse          `json:"server"`
}

func newReport(options *Options, operations uint64, seconds float64, errors *Errors, before, after Usage) *Report {
	report := &Report{
		Settings: options, Connections: options.Connections, Seconds: seconds, Operations: operations,
		OperationsSecond: float64(operations) / seconds, Errors: errors.counts, Latency: map[string]*Latency{},
		ClientCPU: after.client - before.client,
	}
	if len(options.ServerPids) > 0 {
		cpu := after.server - before.server
		report.Server = &ServerUse{
			CPUSeconds: cpu, CPUPerOperation: cpu * 1e6 / float64(max(operations, 1)),
			ResidentAtStart: before.resident, ResidentAtEnd: after.resident,
		}
	}
	return report
}

func (r *Report) addLatency(name string, histogram *Histogram) {
	if latency := histogram.Latency(); latency != nil {
		r.Latency[name] = latency
	}
}

// Errors counts failures by reason.
type Errors struct {
	lock   sync.Mutex
	counts map[string]uint64
}

func newErrors() *Errors {
	return &Errors{counts: map[string]uint64{}}
}

func (e *Errors) add(err error) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.counts[err.Error()]++
	if e.counts[err.Error()] == 1 {
		fmt.Fprintln(os.Stderr, "load:", err)
	}
}
