package image

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Image is what the last stage of a Dockerfile makes.
type Image struct {
	Files      []File
	User       string
	Entrypoint []string
	Cmd        []string
	Exposed    []string
	Labels     map[string]string
}

// File is a file of the image.
type File struct {
	Path    string // absolute
	Mode    int64
	Content []byte
}

// stage is a FROM and what follows it.
type stage struct {
	name, from   string
	instructions []instruction
}

type instruction struct{ name, args string }

// Read reads a Dockerfile as it is built with BINARY=prebuilt from a folder that has what its README comment
// asks for, with build arguments.
func Read(dockerfile, context string, args map[string]string) (*Image, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return nil, err
	}
	stages, global, err := split(text)
	if err != nil {
		return nil, err
	}
	global["BINARY"] = "prebuilt"
	if len(stages) == 0 || stages[len(stages)-1].from != "scratch" {
		return nil, fmt.Errorf("%s: the last stage is not from scratch", dockerfile)
	}
	b := builder{stages: stages, global: global, args: args, context: context}
	last := stages[len(stages)-1]
	out := &Image{Labels: map[string]string{}}
	return out, b.build(last, out)
}

// split joins continued lines and sorts them into stages; global are the arguments before the first.
func split(text []byte) (stages []stage, global map[string]string, err error) {
	global = make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(text))
	joined := ""
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") {
			continue
		}
		if before, ok := strings.CutSuffix(line, `\`); ok {
			joined += before + " "
			continue
		}
		line, joined = strings.TrimSpace(joined+line), ""
		name, args, _ := strings.Cut(line, " ")
		args = strings.TrimSpace(args)
		switch {
		case line == "":
		case name == "FROM":
			fields := strings.Fields(args)
			fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "--platform=") })
			s := stage{from: fields[0]}
			if len(fields) == 3 && strings.EqualFold(fields[1], "AS") {
				s.name = fields[2]
			}
			stages = append(stages, s)
		case len(stages) > 0:
			s := &stages[len(stages)-1]
			s.instructions = append(s.instructions, instruction{name, args})
		case name == "ARG":
			key, value, _ := strings.Cut(args, "=")
			global[key] = value
		default:
			return nil, nil, fmt.Errorf("%q before the first stage", line)
		}
	}
	return stages, global, lines.Err()
}

type builder struct {
	stages       []stage
	global, args map[string]string
	context      string
}

// build adds a stage's instructions to an image.
func (b builder) build(s stage, out *Image) error {
	values := make(map[string]string)
	expand := func(text string) string {
		return os.Expand(text, func(name string) string { return values[name] })
	}
	for _, in := range s.instructions {
		var err error
		switch in.name {
		case "ARG":
			for arg := range strings.FieldsSeq(in.args) {
				key, value, _ := strings.Cut(arg, "=")
				if given, ok := b.args[key]; ok {
					value = given
				}
				values[key] = value
			}
		case "COPY":
			err = b.copy(in.args, out)
		case "LABEL":
			err = labels(expand(in.args), out.Labels)
		case "USER":
			out.User = in.args
		case "EXPOSE":
			out.Exposed = append(out.Exposed, in.args)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(in.args), &out.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(in.args), &out.Cmd)
		default:
			err = fmt.Errorf("this package does not know it: teach it, or leave it out")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", in.name, in.args, err)
		}
	}
	return nil
}

// copy is COPY FROM TO, from the build context or, with --from, from another stage.
func (b builder) copy(args string, out *Image) error {
	fields := strings.Fields(args)
	source := ""
	if name, ok := strings.CutPrefix(fields[0], "--from="); ok {
		source, fields = name, fields[1:]
	}
	if len(fields) != 2 || !filepath.IsAbs(fields[1]) {
		return fmt.Errorf("want one source and an absolute destination")
	}
	if source == "" {
		content, err := os.ReadFile(filepath.Join(b.context, fields[0]))
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info, err := os.Stat(filepath.Join(b.context, fields[0])); err == nil && info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		out.Files = append(out.Files, File{Path: fields[1], Mode: mode, Content: content})
		return nil
	}
	files, err := b.files(source)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Path == fields[0] {
			f.Path = fields[1]
			out.Files = append(out.Files, f)
			return nil
		}
	}
	return fmt.Errorf("stage %s has no such file", source)
}

// files are those of a stage, and of the stage that it is from.
func (b builder) files(name string) ([]File, error) {
	for _, s := range b.stages {
		if s.name != name {
			continue
		}
		from := os.Expand(s.from, func(name string) string { return b.global[name] })
		var out Image
		if from != "scratch" {
			files, err := b.files(from)
			if err != nil {
				return nil, err
			}
			out.Files = files
		}
		out.Labels = map[string]string{}
		err := b.build(s, &out)
		return out.Files, err
	}
	return nil, fmt.Errorf("there is no stage %s", name)
}

// labels reads KEY="VALUE" pairs.
func labels(text string, into map[string]string) error {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, ok := strings.Cut(text, `="`)
		value, after, closed := strings.Cut(rest, `"`)
		if !ok || !closed || strings.ContainsAny(key, " \"") {
			return fmt.Errorf("want KEY=\"VALUE\" at %q", text)
		}
		into[key], text = value, after
	}
	return nil
}
