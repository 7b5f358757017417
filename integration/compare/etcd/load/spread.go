package main

import (
	"slices"
	"time"
)

// spread is the shortest, the middle and the longest of some times.
func spread(times []time.Duration) (first, middle, last time.Duration) {
	slices.Sort(times)
	return times[0], times[len(times)/2], times[len(times)-1]
}
