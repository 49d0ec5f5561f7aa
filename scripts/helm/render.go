// Renders a chart as `helm template` does: Go's text/template with Sprig, and the functions that Helm adds. It supports no hooks,
// no subcharts and no look-ups in a cluster, and does not check the schema of the values.
//
//	render CHART NAME NAMESPACE [VALUES...]
//
// prints {"values": {...}, "files": {"templates/x.yaml": "text", ...}} as JSON; values: those of the chart, merged with the files.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

type kubeVersion struct{ Version, Major, Minor string }

func (v kubeVersion) String() string { return v.Version }

type apiVersions []string

func (a apiVersions) Has(name string) bool {
	for _, known := range a {
		if known == name {
			return true
		}
	}
	return false
}

func main() {
	if len(os.Args) < 4 {
		stop(errors.New("usage: render CHART NAME NAMESPACE [VALUES...]"))
	}
	rendered, err := render(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	stop(err)
	stop(json.NewEncoder(os.Stdout).Encode(rendered))
}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart, name, namespace string, files []string) (values, error) {
	all, err := readYAML(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		own, err := readYAML(file)
		if err != nil {
			return nil, err
		}
		all = merge(all, own)
	}
	about, err := readYAML(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, err
	}
	sort.Strings(paths)
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := root.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	context := values{
		"Values":       all,
		"Chart":        map[string]interface{}{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release":      values{"Name": name, "Namespace": namespace, "Service": "Helm", "IsInstall": true, "IsUpgrade": false, "Revision": 1},
		"Capabilities": values{"KubeVersion": kubeVersion{"v1.30.0", "1", "30"}, "APIVersions": apiVersions{"v1"}},
	}
	rendered := map[string]string{}
	for _, path := range paths {
		file := filepath.Base(path)
		if strings.HasPrefix(file, "_") {
			continue
		}
		context["Template"] = values{"Name": "trivet/templates/" + file, "BasePath": "trivet/templates"}
		var text strings.Builder
		if err := root.ExecuteTemplate(&text, file, context); err != nil {
			return nil, err
		}
		rendered["templates/"+file] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	return values{"values": all, "files": rendered}, nil
}

func readYAML(path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := values{}
	return read, yaml.UnmarshalStrict(text, &read)
}

// merge merges maps of values recursively; null removes a default.
func merge(base, own values) values {
	for key, value := range own {
		inner, isMap := value.(values)
		below, wasMap := base[key].(values)
		switch {
		case value == nil:
			delete(base, key)
		case isMap && wasMap:
			base[key] = merge(below, inner)
		default:
			base[key] = value
		}
	}
	return base
}

// functions returns those of Sprig, except for those that read the environment, and those of Helm.
func functions(root *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := root.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	known["tpl"] = func(text string, data interface{}) (string, error) {
		copied, err := root.Clone()
		if err != nil {
			return "", err
		}
		parsed, err := copied.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		err = parsed.Execute(&out, data)
		return out.String(), err
	}
	known["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	known["fromYaml"] = func(text string) values {
		read := values{}
		if err := yaml.Unmarshal([]byte(text), &read); err != nil {
			read["Error"] = err.Error()
		}
		return read
	}
	known["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(text)
	}
	known["fromJson"] = func(text string) values {
		read := values{}
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			read["Error"] = err.Error()
		}
		return read
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	known["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	known["lookup"] = func(string, string, string, string) (values, error) { return values{}, nil }
	return known
}
