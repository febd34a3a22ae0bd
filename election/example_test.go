package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/leasecron/leasecron/election"
)

func ExampleElector() {
	var elector election.Elector
	elector, err := election.NewStandalone(election.Options{
		Identity: election.NewIdentity("pod-a"),
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancelCause(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, lease *election.Lease) error {
		lease.SetTerm(lease.AnnotatedTerm() + 1) // the ledger decides it, really
		fmt.Printf("%s leads term %d: %v\n", elector.Status().HolderName(), lease.Term(), lease.Valid())
		stop(errors.New("drained"))
		<-ctx.Done()
		fmt.Println("then:", lease.Check())
		return nil
	})
	fmt.Println("Run:", err)
	// Output:
	// pod-a leads term 1: true
	// then: not leading: drained
	// Run: drained
}

func ExampleNewIdentity() {
	identity := election.NewIdentity("web-0")
	fmt.Println(identity != election.NewIdentity("web-0"))
	fmt.Println(election.Status{Holder: identity}.HolderName())
	// Output:
	// true
	// web-0
}
