package callback_test

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// database is opened with the driver of the app's database.
var database *sql.DB

// sqlStore remembers occurrences for all replicas (PostgreSQL):
//
//	CREATE TABLE occurrences (
//	  occurrence    text PRIMARY KEY,
//	  run           text NOT NULL,
//	  claimed_until timestamptz NOT NULL,
//	  done          boolean NOT NULL DEFAULT false,
//	  message       text NOT NULL DEFAULT ''
//	)
type sqlStore struct {
	db *sql.DB
	// lease is how long a claim lasts whose process has died: longer than the longest timeout of
	// a job.
	lease time.Duration
}

func (s *sqlStore) Claim(ctx context.Context, run *callback.Run) (callback.Claim, error) {
	result, err := s.db.ExecContext(ctx, `
		INSERT INTO occurrences (occurrence, run, claimed_until) VALUES ($1, $2, now() + $3 * interval '1 second')
		ON CONFLICT (occurrence) DO UPDATE SET run = excluded.run, claimed_until = excluded.claimed_until
		WHERE NOT occurrences.done AND occurrences.claimed_until < now()`,
		run.Occurrence, run.ID, s.lease.Seconds())
	if err != nil {
		return callback.Claim{}, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return callback.Claim{State: callback.Claimed}, err
	}
	claim := callback.Claim{State: callback.InProgress}
	var done bool
	err = s.db.QueryRowContext(ctx, `SELECT done, message FROM occurrences WHERE occurrence = $1`, run.Occurrence).Scan(&done, &claim.Message)
	switch {
	case errors.Is(err, sql.ErrNoRows): // forgotten a moment ago: ask again
		return claim, nil
	case done:
		claim.State = callback.Done
	}
	return claim, err
}

func (s *sqlStore) Finish(ctx context.Context, run *callback.Run, message string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE occurrences SET done = true, message = $3 WHERE occurrence = $1 AND run = $2`,
		run.Occurrence, run.ID, message)
	return err
}

func (s *sqlStore) Forget(ctx context.Context, run *callback.Run) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM occurrences WHERE occurrence = $1 AND run = $2 AND NOT done`, run.Occurrence, run.ID)
	return err
}

// Replicas that share a database remember occurrences there.
func ExampleStore() {
	r := callback.NewReceiver(callback.Options{Store: &sqlStore{db: database, lease: 2 * time.Hour}})
	_ = r
}
