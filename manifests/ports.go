package manifests

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/leasecron/leasecron/config"
)

// listener is an address of the sidecar's.
type listener struct{ setting, address string }

// freePorts moves the sidecar off ports that are taken in its pod, whose containers share one network: a second
// listener on a port ends one of the two programs. A port that somebody chose is not moved, but refused.
func freePorts(in *Injected, spec map[string]any, variables map[string]string) error {
	taken := takenPorts(in, spec)
	defaults, err := config.LoadSettings(nil)
	if err != nil {
		return err
	}
	listeners := []listener{{settingListen, defaults.Listen}, {settingAPIListen, defaults.APIListen}}
	for _, l := range listeners {
		address := cmp.Or(variables[l.setting], l.address)
		host, _, err := net.SplitHostPort(address)
		number, _ := port(address)
		if err != nil || number <= 0 {
			continue // what is wrong with it, the settings say
		}
		owner, clash := taken[number]
		if clash && variables[l.setting] != "" {
			return fmt.Errorf("%s=%s: port %d is taken, by %s: set another port, as in --set %s=%s", l.setting, address, number, owner,
				l.setting[len(config.SettingPrefix):], net.JoinHostPort(host, strconv.Itoa(int(free(taken, number)))))
		}
		if clash {
			number = free(taken, number)
			variables[l.setting] = net.JoinHostPort(host, strconv.Itoa(int(number)))
			in.warn("port %s is taken, by %s: the sidecar listens on %s instead; set %s for another port", address, owner, variables[l.setting], l.setting)
		}
		taken[number] = "the sidecar's " + l.setting
	}
	return nil
}

// free is a port near a number that nobody has, and that is not the one beside it, which is often the other listener's.
func free(taken map[int32]string, from int32) int32 {
	for n := from + 2; n < 1<<16; n++ {
		if taken[n] == "" {
			return n
		}
	}
	return 0 // no pod declares all of them
}

// takenPorts are the TCP ports of the pod's other containers, and where the app listens, with whose they are.
func takenPorts(in *Injected, spec map[string]any) map[int32]string {
	taken := make(map[int32]string)
	if u, err := url.Parse(in.Target); err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			taken[int32(n)] = "the app, which listens at " + in.Target
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(spec, list) {
			if text(c, "name") == Container || list == "initContainers" && text(c, "restartPolicy") != "Always" {
				continue // one that has ended when the sidecar begins
			}
			for _, p := range tcpPorts(c) {
				if n, ok := whole(p["containerPort"]); ok && n > 0 && n < 1<<16 {
					taken[int32(n)] = "container " + text(c, "name")
				}
			}
		}
	}
	return taken
}
