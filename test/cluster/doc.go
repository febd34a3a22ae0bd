// Package cluster runs whole sidecars for tests: processes of the real program, each beside a
// scripted app, in a namespace of a real API server.
//
//	func TestMain(m *testing.M) { cluster.Main(m) } // builds the program
//
//	func TestSomething(t *testing.T) {
//		c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: tick, path: /tick, schedule: rate 1s}\n")
//		s := c.Start(t, "shop-0") // serves when this returns, ends with the test
//		calls, err := s.App.WaitFor(3, 20*time.Second)
//		s.Stop(t, 15*time.Second)
//		recorded := c.Recorded(t) // what ledger and history say
//	}
//
// What takes a testing.TB fails the test. The rest returns errors, for those who break things on
// purpose and expect some.
package cluster
