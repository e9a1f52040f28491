//go:build linux

package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	chartloader "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chart = "../helm/patchbay"

// rendered are the objects of the chart.
type rendered struct {
	deployment appsv1.Deployment
	service    corev1.Service
	config     corev1.ConfigMap
	budget     *policyv1.PodDisruptionBudget // nil: there is none
}

// render renders the chart as helm template does, and decodes each object without unknown fields.
func render(values string) (*rendered, error) {
	c, err := chartloader.Load(chart)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "team", Namespace: "tools"}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	r := new(rendered)
	for name, text := range files {
		var to any
		switch filepath.Base(name) {
		case "deployment.yaml":
			to = &r.deployment
		case "service.yaml":
			to = &r.service
		case "config.yaml":
			to = &r.config
		case "budget.yaml":
			if strings.TrimSpace(text) == "" {
				continue
			}
			r.budget = new(policyv1.PodDisruptionBudget)
			to = r.budget
		case "_names.tpl":
			continue
		default:
			return nil, fmt.Errorf("%s is unknown to this test", name)
		}
		if err := yaml.UnmarshalStrict([]byte(text), to); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
		}
	}
	return r, nil
}

const values = `
replicas: 2
gateway:
  auth: ["apikeys:/run/secrets/patchbay/keys.jsonl"]
  audit: {file: /var/lib/patchbay/audit.jsonl}
servers:
  everything: {builtin: everything}
  node: {command: node, args: [/opt/node_modules/@modelcontextprotocol/server-everything/dist/index.js]}
secret: keys
`

func TestChart(t *testing.T) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	for _, m := range lint.AllWithKubeVersion(chart, given, "tools", nil).Messages {
		if m.Severity > support.InfoSev {
			t.Errorf("helm lint: %v", m)
		}
	}
	r, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	pod := r.deployment.Spec.Template.Spec
	box := pod.Containers[0]
	if *pod.SecurityContext.RunAsUser != 65532 || !*pod.SecurityContext.RunAsNonRoot || !*box.SecurityContext.ReadOnlyRootFilesystem || *box.SecurityContext.AllowPrivilegeEscalation ||
		!slices.Equal(box.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the container may do too much: %+v %+v", pod.SecurityContext, box.SecurityContext)
	}
	if want := "ghcr.io/patchbay-dev/patchbay:0.1.0-node"; box.Image != want {
		t.Errorf("the image is %s, want %s", box.Image, want)
	}
	if box.ReadinessProbe.HTTPGet.Path != "/readyz" || box.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("probes: %v, %v", box.ReadinessProbe, box.LivenessProbe)
	}
	selects := func(what string, by map[string]string) {
		t.Helper()
		for name, value := range by {
			if r.deployment.Spec.Template.Labels[name] != value {
				t.Errorf("%s selects %s=%s, and the pods have %v", what, name, value, r.deployment.Spec.Template.Labels)
			}
		}
		if len(by) == 0 {
			t.Errorf("%s selects nothing", what)
		}
	}
	selects("the Deployment", r.deployment.Spec.Selector.MatchLabels)
	selects("the Service", r.service.Spec.Selector)
	selects("the PodDisruptionBudget", r.budget.Spec.Selector.MatchLabels)
	if r.service.Spec.ClusterIP != corev1.ClusterIPNone || r.budget.Spec.MinAvailable.IntValue() != 1 || *r.deployment.Spec.Replicas != 2 {
		t.Errorf("%+v\n%+v", r.service.Spec, r.budget.Spec)
	}
	for _, m := range box.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("the volume %s does not exist", m.Name)
		}
	}

	// All other values.
	alone, err := render("{gateway: {auth: [x]}, claim: disk, metricsPort: 0, nodeSelector: {a: b}, tolerations: [{key: a}], affinity: {nodeAffinity: {}}, imagePullSecrets: [{name: a}], env: [{name: A, value: b}], envFrom: [{secretRef: {name: a}}]}")
	if err != nil {
		t.Fatal(err)
	}
	if alone.budget != nil || len(alone.service.Spec.Ports) != 1 || alone.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || strings.Contains(alone.config.Data["gateway.yaml"], "metrics") {
		t.Errorf("one replica: %+v", alone)
	}
	for bad, want := range map[string]string{
		"{}":                    "auth",
		"{gateway: {auth: []}}": "auth",
		"{gateway: {auth: [x], servers: own.json}}":             "gateway",
		"{gateway: {auth: [x], listen: {http: \"0.0.0.0:1\"}}}": "listen",
		"{gateway: {auth: [x]}, replicas: 0}":                   "replicas",
		"{gateway: {auth: [x]}, replica: 2}":                    "replica",
		"{gateway: {auth: [x]}, servers: {a: none}}":            "servers",
		"{gateway: {auth: [x]}, image: {repository: \"\"}}":     "image",
	} {
		if _, err := render(bad); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications") || !strings.Contains(err.Error(), want) {
			t.Errorf("values %s: %v, want %q", bad, err, want)
		}
	}
}

// The library of Compose takes the file; without a version it says what is missing.
func TestCompose(t *testing.T) {
	load := func(env types.Mapping) (*types.Project, error) {
		return loader.LoadWithContext(context.Background(), types.ConfigDetails{WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: "../compose.yaml"}}, Environment: env})
	}
	if _, err := load(nil); err == nil || !strings.Contains(err.Error(), "is the version of Patchbay, such as 0.1.0") {
		t.Errorf("without VERSION: %v", err)
	}
	p, err := load(types.Mapping{"VERSION": "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	s := p.Services["patchbay"]
	if s.Image != "ghcr.io/patchbay-dev/patchbay:1.2.3-node" || s.User != "65532:65532" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("%+v", s)
	}
}

// The parser of BuildKit takes the second image. It has what the chart expects, and takes the archive by its name.
func TestContainerfile(t *testing.T) {
	f, err := os.Open("../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range parsed.AST.Children {
		lines = append(lines, n.Original)
	}
	for _, want := range []string{"FROM node:22-slim", "ADD patchbay_${VERSION}_linux_${TARGETARCH}.tar.gz /usr/local/lib/patchbay/", "USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/patchbay"]`} {
		if !slices.Contains(lines, want) {
			t.Errorf("deploy/Containerfile lacks %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if len(parsed.Warnings) > 0 {
		t.Error(parsed.Warnings)
	}
}
