package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unpack writes the image's files into an empty folder, and further ones that a pod would mount.
func (i *Image) Unpack(dir string, mounted ...File) error {
	for _, f := range append(append([]File(nil), i.Files...), mounted...) {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// sandboxed is the variable by which a program finds out that it is the one inside.
const sandboxed = "LEASECRON_IMAGE_SANDBOX"

// Command runs the image's entrypoint with args as a container would: its root is dir, which it
// cannot write to, its user the image's, and it cannot gain rights. It shares nothing of the host but the
// network. It works as root and, where the kernel allows user namespaces, as anybody.
//
// The calling program is started again inside, and has to call [Inside] first thing.
func (i *Image) Command(ctx context.Context, dir string, env []string, args ...string) (*exec.Cmd, error) {
	uid, gid, ok := strings.Cut(i.User, ":")
	u, err1 := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	if !ok || err1 != nil || err2 != nil || u == 0 {
		return nil, fmt.Errorf("user %q: want the numbers of a user and of a group, not root's: Kubernetes refuses all else under runAsNonRoot", i.User)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{dir, i.User}, append(i.Entrypoint, args...)...)...)
	cmd.Env = append([]string{sandboxed + "=1"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT} // until the inside drops them
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: u, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: g, HostID: os.Getgid(), Size: 1}}
	}
	return cmd, nil
}

// Inside does nothing in a program that was not started by [Image.Command]. Else it becomes the image's
// program, or ends.
func Inside() {
	if os.Getenv(sandboxed) == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "sandbox:", enter(os.Args[1], os.Args[2], os.Args[3:]))
	os.Exit(125)
}

func enter(dir, user string, command []string) error {
	uid, gid, _ := strings.Cut(user, ":")
	u, _ := strconv.Atoi(uid)
	g, _ := strconv.Atoi(gid)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to oneself: %w", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	if err := errors.Join(unix.Chdir(dir), unix.Chroot("."), unix.Chdir("/")); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(g), syscall.Setuid(u)); err != nil {
			return fmt.Errorf("become user %s: %w", user, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop rights: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("gain no rights: %w", err)
	}
	if err := os.WriteFile("/written", nil, 0o600); !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the root can be written to: %w", err)
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, sandboxed+"=") {
			env = append(env, v)
		}
	}
	return unix.Exec(command[0], command, env)
}
