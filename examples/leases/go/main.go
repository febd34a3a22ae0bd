// Command go does a piece of work that only one replica should do at a time: it takes a named lease
// from its sidecar, works while it renews the lease, stops when that is lost, and releases it.
//
//	go build -o bin/lease-example ./examples/leases/go
//	bin/lease-example -name search.rebuild -ttl 15s -steps 20
//
// Exit code 0: done; 75: somebody else does it; 1: lost or failed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	name := flag.String("name", "search.rebuild", "the lease")
	ttl := flag.Duration("ttl", 15*time.Second, "how long it lasts after each renewal; whole seconds")
	steps := flag.Int("steps", 20, "how much there is to do, a second each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	host, _ := os.Hostname()
	l := lease{
		url: cmp.Or(os.Getenv("LEASECRON_URL"), "http://127.0.0.1:9471"), name: *name, ttl: *ttl,
		holder: fmt.Sprintf("go-%s-%d", host, os.Getpid()),
	}
	err := l.hold(ctx, func(ctx context.Context, token int64) error {
		for i := range *steps {
			// Send the token along with each write, and let the store refuse a smaller one.
			fmt.Printf("step %d with token %d\n", i+1, token)
			if !pause(ctx, time.Second) {
				return ctx.Err()
			}
		}
		return nil
	})
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, errHeld):
		fmt.Println(err)
		os.Exit(75)
	default:
		fmt.Println(err)
		os.Exit(1)
	}
}
