package callback_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// An app with one job that is done when it answers, and one that is done later.
func Example() {
	report := func(_ context.Context, run *callback.Run) (string, error) {
		var options struct{ Format string }
		if err := run.Decode(&options); err != nil {
			return "", err // permanent: each attempt carries the same data
		}
		from, until := run.ScheduledAt, run.CoveredUntil
		return fmt.Sprintf("%s from %s to %s", options.Format, from.Format(time.DateOnly), until.Format(time.DateOnly)), nil
	}
	imports := func(ctx context.Context, _ *callback.Run) (string, error) {
		for file := range 42 {
			if ctx.Err() != nil { // the run was canceled, or its timeout has passed
				return "", context.Cause(ctx)
			}
			callback.ReportProgress(ctx, 100*file/42, fmt.Sprintf("%d of 42 files", file))
		}
		return "42 files imported", nil
	}

	verifier, err := callback.NewFileVerifier("/etc/leasecron/signing-secret")
	if err != nil {
		log.Fatal(err)
	}
	r := callback.NewReceiver(callback.Options{Verifier: verifier})
	mux := http.NewServeMux()
	mux.Handle("POST /jobs/report", r.Handler(report))
	mux.Handle("POST /jobs/import", r.AsyncHandler(imports))
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-ctx.Done()
	grace, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = server.Shutdown(grace)
	_ = r.Shutdown(grace)
}

// A second delivery of an occurrence that is done gets the answer of the first one.
func ExampleReceiver_Handler() {
	r := callback.NewReceiver(callback.Options{})
	server := httptest.NewServer(r.Handler(func(_ context.Context, run *callback.Run) (string, error) {
		fmt.Println("working on", run)
		return "42 rows", nil
	}))
	defer server.Close()

	const body = `{"id":"0192f1c2a7b97c3e8d5f6a7b8c9d0e1f","occurrence":"5f0e3f8d7c6b5a493827161504f3e2d1",
		"job":"reports.nightly","trigger":"workdays","cause":"schedule","attempt":1}`
	for range 2 {
		resp, err := http.Post(server.URL, "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, string(text))
	}
	// Output:
	// working on reports.nightly/workdays attempt 1 of 5f0e3f8d7c6b5a493827161504f3e2d1
	// 200 42 rows
	// 200 42 rows
}

// The kind of an error decides whether, and when, the sidecar tries again.
func ExamplePermanent() {
	locked := errors.New("the source is locked")
	server := httptest.NewServer(callback.NewReceiver(callback.Options{}).Handler(
		func(_ context.Context, run *callback.Run) (string, error) {
			switch run.Attempt {
			case 1:
				return "", locked
			case 2:
				return "", callback.RetryAfter(locked, time.Minute)
			default:
				return "", callback.Permanent(locked)
			}
		}))
	defer server.Close()

	for attempt := 1; attempt <= 3; attempt++ {
		body := fmt.Sprintf(`{"id":"%032x","occurrence":"5f0e3f8d7c6b5a493827161504f3e2d1","job":"import","cause":"retry","attempt":%d}`, attempt, attempt)
		resp, err := http.Post(server.URL, "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Printf("%d %q %s\n", resp.StatusCode, resp.Header.Get("Retry-After"), text)
	}
	// Output:
	// 500 "" the source is locked
	// 503 "60" the source is locked
	// 422 "" the source is locked
}

// Verify and Parse serve where another router or framework has read the body.
func ExampleParse() {
	header := http.Header{"Content-Type": {"application/json"}}
	body := []byte(`{"id":"0192f1c2a7b97c3e8d5f6a7b8c9d0e1f","occurrence":"5f0e3f8d7c6b5a493827161504f3e2d1",
		"job":"invoices","trigger":null,"cause":"manual","attempt":1,"term":12,"data":{"number":9007199254740993}}`)

	run, err := callback.Parse(header, body)
	if err != nil {
		log.Fatal(err)
	}
	var data map[string]any
	if err := run.Decode(&data); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Job, run.Cause, run.Term, data["number"])
	// Output: invoices manual 12 9007199254740993
}

// A worker process that the app hands its work to ends the run by itself.
func ExampleSidecar() {
	sidecar, err := callback.NewSidecar(callback.DefaultSidecar, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	const run = "0192f1c2a7b97c3e8d5f6a7b8c9d0e1f" // Run.ID, from the queue

	_, err = sidecar.Heartbeat(ctx, run, &callback.Progress{Percent: 40, Message: "17 of 42 files"})
	if errors.Is(err, callback.ErrRunOver) {
		return // canceled, or too late: the outcome counts for nothing
	}
	if err := sidecar.Complete(ctx, run, "42 files imported"); err != nil {
		log.Print(err)
	}
}
