package invoker_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// BenchmarkInvoke compares an attempt with the bare exchange that it carries.
func BenchmarkInvoke(b *testing.B) {
	target, err := app.Start(app.Options{Keep: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer target.Close()

	// The bare client sends the same bytes, so that the app's part is the same.
	a := attempt(target.URL() + "/")
	client, err := invoker.New(invoker.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if out := invoke(client, a); out.State != run.StateSucceeded {
		b.Fatalf("outcome %+v", out)
	}
	client.Close()
	sample := target.Calls()[0]

	b.Run("invoker", func(b *testing.B) {
		client, err := invoker.New(invoker.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		b.SetParallelism(16)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if out := invoke(client, a); out.State != run.StateSucceeded {
					b.Errorf("outcome %+v", out)
				}
			}
		})
	})
	b.Run("bare", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
		defer client.CloseIdleConnections()
		b.SetParallelism(16)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, target.URL()+"/", strings.NewReader(sample.Text))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header = sample.Header.Clone()
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	})
}
