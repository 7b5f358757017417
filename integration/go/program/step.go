package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

// A program that follows what integration/lib/clients.py wants: a line for each step, and servers that fail over on request.

var input = bufio.NewReader(os.Stdin)

type failure string

// step runs one step and prints what came of it; it goes on after a failed one.
func step(name string, run func()) {
	began := time.Now()
	defer func() {
		switch reason := recover().(type) {
		case nil:
			fmt.Printf("ok %s (%.1f s)\n", name, time.Since(began).Seconds())
		case failure:
			fmt.Printf("FAILED %s: %s\n", name, string(reason))
		default:
			fmt.Printf("FAILED %s: panic: %v\n", name, reason)
		}
	}()
	run()
}

// want ends the step unless the condition holds.
func want(holds bool, format string, arguments ...interface{}) {
	if !holds {
		panic(failure(fmt.Sprintf(format, arguments...)))
	}
}

// must ends the step on an error.
func must(err error) {
	want(err == nil, "%v", err)
}

// refused ends the step unless the error is the expected one.
func refused(err, expected error) {
	want(err == expected, "got %v, not %v", err, expected)
}

// eventually waits until the condition holds.
func eventually(what string, condition func() bool) {
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		want(time.Now().Before(deadline), "not within a minute: %s", what)
	}
}

// failOver has the leader killed, and returns when another one leads and the killed one is back.
func failOver() {
	fmt.Println("fail over")
	answer, err := input.ReadString('\n')
	want(err == nil && answer == "done\n", "no answer to the request for a failover: %q, %v", answer, err)
}
