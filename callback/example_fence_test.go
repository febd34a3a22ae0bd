package callback_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasecron/leasecron/callback"
)

// checkToken lets a transaction go on if no higher token was seen for the job, and keeps the
// row locked until it ends, so that an overtaken leader's work cannot come after its successor's.
//
//	CREATE TABLE fences (job text PRIMARY KEY, token bigint NOT NULL)
func checkToken(ctx context.Context, tx *sql.Tx, run *callback.Run) error {
	if run.Term == 0 { // scope instance: no token
		return nil
	}
	result, err := tx.ExecContext(ctx, `
		INSERT INTO fences (job, token) VALUES ($1, $2)
		ON CONFLICT (job) DO UPDATE SET token = excluded.token WHERE fences.token <= excluded.token`,
		run.Job, run.Term)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("%w (token %d)", callback.ErrStaleToken, run.Term)
}

// A token is compared where the work is done: in the transaction that does it.
func ExampleFence() {
	r := callback.NewReceiver(callback.Options{})
	settle := func(ctx context.Context, run *callback.Run) (string, error) {
		tx, err := database.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer func() { _ = tx.Rollback() }()
		if err := checkToken(ctx, tx, run); err != nil {
			return "", err // answered with 409
		}
		// The occurrence as key: what was done before, in whichever replica, stays as it is.
		_, err = tx.ExecContext(ctx, `INSERT INTO settlements (occurrence, day) VALUES ($1, $2) ON CONFLICT (occurrence) DO NOTHING`,
			run.Occurrence, run.ScheduledAt)
		if err != nil {
			return "", err
		}
		return "settled", tx.Commit()
	}
	_ = r.Handler(settle)
}
