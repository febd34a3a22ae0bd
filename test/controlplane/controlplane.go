package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasecron/leasecron/test/pki"
)

const (
	adminFile = "admin.kubeconfig"
	keyFolder = "pki"
)

// ControlPlane is a running etcd and kube-apiserver. It is safe for concurrent use.
type ControlPlane struct {
	// APIServer and Etcd can be stopped, killed and paused, unless the control plane is
	// shared.
	APIServer, Etcd *Component

	dir   string
	ca    *pki.Authority
	admin *rest.Config
	lock  *os.File // held while dir is in use; nil when another process owns it
}

// New starts a control plane and returns when it is ready; progress, such as that of a first
// build, goes to log. The caller must Close it. Tests use Start or Shared instead.
func New(ctx context.Context, log io.Writer) (*ControlPlane, error) {
	binaries, err := Build(ctx, log, "etcd", "kube-apiserver")
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{}
	if err := cp.prepare(binaries); err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	if err := cp.up(ctx); err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// attach uses a control plane that another process started in dir.
func attach(dir string) (*ControlPlane, error) {
	admin, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, adminFile))
	if err != nil {
		return nil, err
	}
	admin.QPS = -1
	ca, err := pki.Load(filepath.Join(dir, keyFolder))
	if err != nil {
		return nil, err
	}
	return &ControlPlane{
		APIServer: &Component{name: "kube-apiserver"},
		Etcd:      &Component{name: "etcd"},
		dir:       dir,
		ca:        ca,
		admin:     admin,
	}, nil
}

// URL is the API server's address. It stays the same when the API server restarts.
func (cp *ControlPlane) URL() string { return cp.admin.Host }

// Dir is the folder with the control plane's state, logs and keys: the value that
// CONTROLPLANE_STATE takes.
func (cp *ControlPlane) Dir() string { return cp.dir }

// AdminConfig is access that may do everything, without a client-side rate limit.
func (cp *ControlPlane) AdminConfig() *rest.Config { return rest.CopyConfig(cp.admin) }

// Kubeconfig is a file with the access of AdminConfig.
func (cp *ControlPlane) Kubeconfig() string { return filepath.Join(cp.dir, adminFile) }

// Close kills the components and removes the folder.
func (cp *ControlPlane) Close() error {
	if cp.lock == nil {
		return nil
	}
	var errs []error
	// The API server first: without etcd it would spend its last moments on retries.
	for _, c := range []*Component{cp.APIServer, cp.Etcd} {
		if c != nil {
			errs = append(errs, c.End(syscall.SIGKILL))
		}
	}
	errs = append(errs, os.RemoveAll(cp.dir), cp.lock.Close())
	return errors.Join(errs...)
}

// prepare makes the folder, the keys and the command lines.
func (cp *ControlPlane) prepare(binaries string) error {
	var err error
	if cp.dir, cp.lock, err = newDir(); err != nil {
		return fmt.Errorf("make the control plane's folder: %w", err)
	}
	if cp.ca, err = pki.New(); err != nil {
		return fmt.Errorf("make a CA: %w", err)
	}
	keys := filepath.Join(cp.dir, keyFolder)
	if err := os.Mkdir(keys, 0o700); err != nil {
		return err
	}
	if err := cp.ca.Save(keys); err != nil {
		return err
	}
	cert, key, err := cp.ca.IssueServer("kube-apiserver")
	if err != nil {
		return err
	}
	if err := pki.WritePair(keys, "apiserver", cert, key); err != nil {
		return err
	}
	if err := pki.WriteKeyPair(keys, "sa"); err != nil {
		return err
	}

	port, err := freePort()
	if err != nil {
		return err
	}
	etcdPort, err := freePort()
	if err != nil {
		return err
	}
	if cp.admin, err = cp.clientConfig("https://127.0.0.1:"+strconv.Itoa(port), "admin", "system:masters"); err != nil {
		return err
	}
	cp.admin.QPS = -1
	if err := saveKubeconfig(cp.Kubeconfig(), cp.admin, ""); err != nil {
		return err
	}

	etcdURL := "http://127.0.0.1:" + strconv.Itoa(etcdPort)
	cp.Etcd = &Component{
		name: "etcd",
		path: filepath.Join(binaries, "etcd"),
		args: []string{
			"--data-dir=" + filepath.Join(cp.dir, "etcd"),
			"--listen-client-urls=" + etcdURL,
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=http://127.0.0.1:0", // no peers
			"--log-level=warn",
		},
		logFile: filepath.Join(cp.dir, "etcd.log"),
		ready:   answers(http.DefaultClient, etcdURL+"/health"),
	}
	client, err := rest.HTTPClientFor(cp.admin)
	if err != nil {
		return err
	}
	cp.APIServer = &Component{
		name: "kube-apiserver",
		path: filepath.Join(binaries, "kube-apiserver"),
		args: []string{
			"--etcd-servers=" + etcdURL,
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--tls-cert-file=" + filepath.Join(keys, "apiserver.crt"),
			"--tls-private-key-file=" + filepath.Join(keys, "apiserver.key"),
			"--client-ca-file=" + filepath.Join(keys, "ca.crt"),
			"--cert-dir=" + keys,
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + filepath.Join(keys, "sa.pub"),
			"--service-account-signing-key-file=" + filepath.Join(keys, "sa.key"),
			"--service-account-extend-token-expiration=false",
			"--service-cluster-ip-range=10.0.0.0/24",
			// A loopback address is no valid endpoint of the Service "kubernetes".
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true",
			"--profiling=false",
		},
		logFile: filepath.Join(cp.dir, "kube-apiserver.log"),
		ready:   answers(client, cp.admin.Host+"/readyz"),
	}
	return nil
}

func (cp *ControlPlane) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// Both at once: the API server needs longer to get as far as asking for etcd than etcd
	// needs to answer.
	for _, c := range []*Component{cp.Etcd, cp.APIServer} {
		if err := c.start(); err != nil {
			return err
		}
	}
	for _, c := range []*Component{cp.Etcd, cp.APIServer} {
		if err := c.waitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// clientConfig is access by a client certificate.
func (cp *ControlPlane) clientConfig(host, user string, groups ...string) (*rest.Config, error) {
	cert, key, err := cp.ca.IssueClient(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("issue a client certificate: %w", err)
	}
	return &rest.Config{
		Host:            host,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.CertPEM(), CertData: cert, KeyData: key},
	}, nil
}

// answers is a readiness check: GET url says 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s: %s", url, res.Status, body)
		}
		return nil
	}
}

// freePort finds a port below the range from which systems give ports to outgoing
// connections: a component's port must still be free when it restarts.
func freePort() (int, error) {
	const first, count = 20000, 12000
	var last error
	for range 100 {
		port := first + rand.IntN(count)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

const dirPrefix = "leasecron-controlplane-"

// newDir makes a temporary folder and locks it, and removes those whose process has ended
// without cleaning up: etcd reserves more than 100 MB in each.
func newDir() (string, *os.File, error) {
	parent := os.TempDir()
	sweep(parent)
	// It gets its final name once it is locked, so that no other sweep takes it for a left-over.
	dir, err := os.MkdirTemp(parent, "new-"+dirPrefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"), false)
	if err != nil {
		return "", nil, err
	}
	final := filepath.Join(parent, strings.TrimPrefix(filepath.Base(dir), "new-"))
	if err := os.Rename(dir, final); err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return final, lock, nil
}

func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		lock, err := lockFile(filepath.Join(dir, "lock"), false)
		if err != nil {
			continue // in use, or not ours
		}
		_ = os.RemoveAll(dir) // best effort: the next start tries again
		_ = lock.Close()
	}
}
