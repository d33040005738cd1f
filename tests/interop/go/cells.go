package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"
)

const cellTime = 30 * time.Second

// missing is the reason of a cell that fails because the peer lacks the feature.
type missing string

func (m missing) Error() string { return string(m) }

// A cell passes when it returns nil.
type cell struct {
	what string
	when bool
	run  func(ctx context.Context) error
}

// equal compares both values as JSON.
func equal(actual, expected any, what string) error {
	if a, e := plain(actual), plain(expected); !reflect.DeepEqual(a, e) {
		return fmt.Errorf("%s is %.200v, not %.200v", what, a, e)
	}
	return nil
}

func plain(value any) any {
	var out any
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return fmt.Sprint(value)
	}
	return out
}

// until polls, at most five seconds.
func until(ctx context.Context, check func() bool, what string) error {
	for range 500 {
		if check() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("%s did not happen", what)
}

// runCells prints one JSON line for each cell.
func runCells(cells []cell) {
	out := json.NewEncoder(os.Stdout)
	for _, c := range cells {
		if !c.when {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), cellTime)
		line := map[string]string{"what": c.what, "state": "green"}
		if err := c.run(ctx); err != nil {
			line["state"] = "FAILED"
			var lacks missing
			if errors.As(err, &lacks) {
				line["state"] = "missing"
			}
			line["reason"] = fmt.Sprintf("%.300s", strings.Join(strings.Fields(err.Error()), " "))
		}
		cancel()
		out.Encode(line)
	}
}
