// Load against etcd with its own client, in the words of `quenda bench` and with the same report.
//
//	load get --hosts 127.0.0.1:2379 --connections 16 --depth 16 --size 1024 --duration 5 --server-pid 4711
//
// Each connection is a client with an HTTP/2 connection of its own; --depth are requests that it has in flight at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Options are what a run was asked for.
type Options struct {
	Workload    string        `json:"workload"`
	Hosts       []string      `json:"hosts"`
	Connections int           `json:"connections"`
	Depth       int           `json:"depth"`
	Size        int           `json:"size"`
	Keys        int           `json:"znodes"`
	ReadRatio   float64       `json:"read_ratio"`
	Watches     int           `json:"watches"`
	Duration    time.Duration `json:"-"`
	Warmup      time.Duration `json:"-"`
	Requests    int64         `json:"requests"`
	Root        string        `json:"root"`
	Keep        bool          `json:"keep"`
	ServerPids  []int         `json:"server_pid"`
}

func seconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Second))
}

func parse(words []string) (*Options, error) {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return nil, fmt.Errorf("usage: load WORKLOAD [options]; workloads: %s", strings.Join(names(), ", "))
	}
	options := &Options{Workload: words[0]}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	hosts := flags.String("hosts", "127.0.0.1:2379", "members, host:port separated by commas; connections are spread over them")
	pids := flags.String("server-pid", "", "process ids of the members, separated by commas")
	duration := flags.Float64("duration", 10, "seconds to measure")
	warmup := flags.Float64("warmup", 2, "seconds of load before measuring begins")
	flags.IntVar(&options.Connections, "connections", 8, "number of connections")
	flags.IntVar(&options.Depth, "depth", 64, "requests that each connection keeps in flight")
	flags.IntVar(&options.Size, "size", 1024, "bytes of a value")
	flags.IntVar(&options.Keys, "znodes", 1000, "keys that requests are spread over")
	flags.Float64Var(&options.ReadRatio, "read-ratio", 0.7, "part of reads in the mixed workload")
	flags.IntVar(&options.Watches, "watches", 0, "watches of the watch workload, spread over the connections (default one each)")
	flags.Int64Var(&options.Requests, "requests", 0, "end after this many requests, without a warm-up")
	flags.StringVar(&options.Root, "root", "", "prefix to work below (default one of this process)")
	flags.BoolVar(&options.Keep, "keep", false, "leave the keys in place")
	flags.Bool("json", true, "the report is always JSON")
	if err := flags.Parse(words[1:]); err != nil {
		return nil, err
	}
	options.Hosts = strings.Split(*hosts, ",")
	options.Duration, options.Warmup = seconds(*duration), seconds(*warmup)
	if options.Requests > 0 {
		options.Warmup = 0
	}
	if options.Watches == 0 {
		options.Watches = options.Connections
	}
	if options.Root == "" {
		options.Root = fmt.Sprintf("/load-%d-%d", os.Getpid(), time.Now().UnixNano())
	}
	for _, word := range strings.FieldsFunc(*pids, func(r rune) bool { return r == ',' }) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("--server-pid: %w", err)
		}
		options.ServerPids = append(options.ServerPids, pid)
	}
	if options.Connections < 1 || options.Depth < 1 || options.Keys < 1 {
		return nil, errors.New("--connections, --depth and --znodes are at least 1")
	}
	return options, nil
}

func names() []string {
	found := []string{"watch", "sessions"}
	for name := range loops {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}

func run(options *Options) (*Report, error) {
	ctx := context.Background()
	switch options.Workload {
	case "watch":
		return runWatch(ctx, options)
	case "sessions":
		return runSessions(ctx, options)
	}
	loop, known := loops[options.Workload]
	if !known {
		return nil, fmt.Errorf("unknown workload %q; there are %s", options.Workload, strings.Join(names(), ", "))
	}
	return runLoop(ctx, options, loop)
}

func main() {
	options, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	report, err := run(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
