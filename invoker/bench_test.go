package invoker_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// BenchmarkInvoke compares an attempt with the bare exchange that it carries.
func BenchmarkInvoke(b *testing.B) {
	target, err := app.Start(app.Options{Forget: true})
	if err != nil {
		b.Fatal(err)
	}
	defer target.Close()

	b.Run("invoker", func(b *testing.B) {
		client, err := invoker.New(invoker.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		a := attempt(target.URL() + "/")
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
		body := bytes.Repeat([]byte("x"), 400)
		b.SetParallelism(16)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, target.URL()+"/", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
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
