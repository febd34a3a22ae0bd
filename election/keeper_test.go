package election_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
)

func TestKeeper(t *testing.T) {
	t.Parallel()
	long := time.Hour
	t.Run("a term counts from when the write was sent", func(t *testing.T) {
		t.Parallel()
		k := election.NewKeeper(t.Context(), election.KeeperOptions{Sent: time.Now().Add(-long - time.Second), Lasts: long})
		if k.Lease().Valid() || !errors.Is(k.Cause(), election.ErrExpired) {
			t.Errorf("a term whose time was over when it was won is valid, cause %v", k.Cause())
		}
	})
	t.Run("an answer that comes too late brings nothing back", func(t *testing.T) {
		t.Parallel()
		k := election.NewKeeper(t.Context(), election.KeeperOptions{Sent: time.Now(), Lasts: long, AnnotatedTerm: 7})
		if err := k.Extend(time.Now(), 2*long); err != nil || !k.Lease().Valid() || k.Lease().AnnotatedTerm() != 7 {
			t.Errorf("Extend in time = %v, term %d", err, k.Lease().AnnotatedTerm())
		}
		k.End(election.ErrTaken)
		if err := k.Extend(time.Now(), 2*long); !errors.Is(err, election.ErrNotLeading) || !errors.Is(err, election.ErrTaken) {
			t.Errorf("Extend after the end = %v, want ErrNotLeading and the reason", err)
		}
		if k.Lease().Valid() || k.Context().Err() == nil {
			t.Error("the term came back")
		}
	})
	t.Run("a term without an end goes on until it is ended", func(t *testing.T) {
		t.Parallel()
		k := election.NewKeeper(t.Context(), election.KeeperOptions{})
		if err := k.Extend(time.Now(), time.Nanosecond); err != nil {
			t.Errorf("Extend = %v", err)
		}
		if !k.Lease().Valid() {
			t.Error("it ended by itself")
		}
		k.Lease().SetTerm(3)
		select {
		case <-k.Told():
		default:
			t.Error("the elector is not told of the fencing term")
		}
		k.Lease().Resign(nil)
		if err := k.Extend(time.Now(), long); !errors.Is(err, election.ErrResigned) {
			t.Errorf("Extend after Resign = %v", err)
		}
	})
}

func TestOptionsWithDefaults(t *testing.T) {
	t.Parallel()
	if _, err := (election.Options{}).WithDefaults(); err == nil {
		t.Error("options without an identity are accepted")
	}
	o, err := election.Options{Identity: "me"}.WithDefaults()
	if err != nil || o.HandBack != 3*time.Second || o.Logger == nil || o.Eligible() != nil {
		t.Errorf("WithDefaults = %+v, %v", o, err)
	}
}
