package main

import (
	"testing"
	"time"
)

func TestQuantilesAreWithinAThousandth(t *testing.T) {
	var histogram Histogram
	for microsecond := 1; microsecond <= 100_000; microsecond++ {
		histogram.Record(time.Duration(microsecond) * time.Microsecond)
	}
	found := histogram.Latency()
	for wanted, is := range map[float64]float64{50_000: found.P50, 99_000: found.P99, 99_900: found.P999, 100_000: found.Max} {
		if is < wanted*0.997 || is > wanted*1.001 {
			t.Errorf("%v instead of %v", is, wanted)
		}
	}
	if found.Count != 100_000 {
		t.Errorf("%d values", found.Count)
	}
}

func TestTheShortestAndTheLongestFit(t *testing.T) {
	var histogram Histogram
	histogram.Record(0)
	histogram.Record(time.Hour)
	if found := histogram.Latency(); found.P50 != 0 || found.Max < 60e6 {
		t.Errorf("%+v", found)
	}
}
