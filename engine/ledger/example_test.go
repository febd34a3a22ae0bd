package ledger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasecron/leasecron/engine/ledger"
)

func ExampleDocument_Swap() {
	type pauses struct {
		Paused map[string]string `json:"paused,omitempty"`
	}
	ctx := context.Background()
	doc := ledger.NewDocument[pauses](ledger.NewMemory(), ledger.NameCatalog)

	pause := func(p *pauses) error {
		if p.Paused["reports"] != "" {
			return ledger.ErrNoChange
		}
		p.Paused = map[string]string{"reports": "until the disk is replaced"}
		return nil
	}
	for range 2 { // pausing what is paused changes nothing
		now, _, err := doc.Swap(ctx, pause)
		fmt.Println(now.Paused, err)
	}
	// Output:
	// map[reports:until the disk is replaced] <nil>
	// map[reports:until the disk is replaced] <nil>
}

func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	store, err := ledger.OpenFile(filepath.Join(dir, "ledger"))
	if err != nil {
		fmt.Println(err) // another process has it open, or it is damaged
		return
	}
	defer store.Close()
	fmt.Println(store.Exclusive())
	// Output: true
}
