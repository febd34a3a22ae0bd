package invoker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

func ExampleClient_Invoke() {
	target, err := app.Start(app.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer target.Close()
	target.Script("/jobs/report", app.Reply(503, "warming up", "Retry-After", "7"))

	client, err := invoker.New(invoker.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	out := client.Invoke(context.Background(), run.Attempt{
		Namespace: "team-a",
		App:       "shop",
		Run:       run.Run{ID: run.NewID(), Key: run.Key{Job: "reports.nightly"}, Attempt: 1},
		URL:       target.URL() + "/jobs/report",
		Timeout:   10 * time.Second,
		MayStart:  func() error { return nil }, // the lease is valid
	})
	fmt.Println(out.State, out.Status, out.Message, out.Retryable, out.RetryAfter)
	// Output: Failed 503 warming up true 7s
}
