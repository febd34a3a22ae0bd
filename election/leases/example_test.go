package leases_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine/ledger"
)

func ExampleService() {
	store := ledger.NewPort[leases.Table](ledger.NewMemory(), ledger.NameLeases)
	service, err := leases.New(leases.Options{Store: store, Self: leases.Self{Node: "shop-0_x2k7"}})
	if err != nil {
		panic(err)
	}
	defer service.Close()

	ctx := context.Background()
	mine, err := service.Acquire(ctx, leases.AcquireRequest{Name: "search.rebuild", Holder: "worker-1", TTL: 30 * time.Second})
	fmt.Println(mine.Holder, mine.Held, err)

	_, err = service.Acquire(ctx, leases.AcquireRequest{Name: "search.rebuild", Holder: "worker-2", TTL: 30 * time.Second})
	var held *leases.HeldError
	fmt.Println(errors.As(err, &held), held.Holder)

	fmt.Println(service.Release(ctx, "search.rebuild", mine.Token))
	// Output:
	// worker-1 true <nil>
	// true worker-1
	// <nil>
}
