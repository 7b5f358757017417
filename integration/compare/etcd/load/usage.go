package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond of the times in /proc/PID/stat is fixed by the kernel's interface to programs.
const ticksPerSecond = 100.0

// Usage is processor time and memory at one moment; the members' together.
type Usage struct {
	client   float64
	server   float64
	resident uint64
}

func usageNow(options *Options) (Usage, error) {
	var usage Usage
	var err error
	if usage.client, err = cpuSeconds("self"); err != nil {
		return usage, err
	}
	for _, pid := range options.ServerPids {
		cpu, err := cpuSeconds(strconv.Itoa(pid))
		if err != nil {
			return usage, err
		}
		resident, err := residentBytes(pid)
		if err != nil {
			return usage, err
		}
		usage.server, usage.resident = usage.server+cpu, usage.resident+resident
	}
	return usage, nil
}

func cpuSeconds(process string) (float64, error) {
	stat, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return 0, err
	}
	// The program's name may hold spaces and parentheses.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%s/stat has an unknown form", process)
	}
	user, err := strconv.ParseUint(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseUint(fields[12], 10, 64)
	return float64(user+system) / ticksPerSecond, err
}

func residentBytes(pid int) (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmRSS", pid)
}
