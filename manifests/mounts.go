package manifests

import (
	"path"
	"strings"

	"github.com/leasecron/leasecron/config"
)

// warnOfMounts tells of files and sockets that the container is to read and that no volume brings into it: its
// image holds nothing but the program.
func warnOfMounts(in *Injected, spec map[string]any) {
	c, _, err := sidecarIn(spec)
	if err != nil {
		return
	}
	check := func(setting, file string) {
		if file == "" {
			return
		}
		for _, mount := range items(c, "volumeMounts") {
			if at := path.Clean(text(mount, "mountPath")); at == file || at == "/" || strings.HasPrefix(path.Clean(file), at+"/") {
				return
			}
		}
		in.warn("%s names %s, where no volume is mounted into the container: add a volume and its mount, as the part on files and sockets of docs/pack.md shows", setting, file)
	}
	check(config.SettingPrefix+"JOBS_FILE", in.Settings.JobsFile)
	for _, file := range in.Settings.SigningSecretFiles {
		check(config.SettingPrefix+"SIGNING_SECRET_FILES", file)
	}
	check(settingTarget, socketOf(in.Settings.Target))
	check(config.SettingPrefix+"APP_HEALTH_URL", socketOf(in.Settings.AppHealthURL))
}

// socketOf is the path of the Unix socket that a URL names; empty if it names none.
func socketOf(url string) string {
	rest, ok := strings.CutPrefix(url, "unix://")
	if !ok {
		return ""
	}
	socket, _, _ := strings.Cut(rest, ":")
	return socket
}
