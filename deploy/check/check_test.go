//go:build linux

package check

import (
	"context"
	"fmt"
	"maps"
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
	set        *appsv1.StatefulSet // of a cluster, in place of the Deployment; nil: there is none
	service    corev1.Service
	nodes      *corev1.Service // of a cluster; nil: there is none
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
			if strings.Contains(text, "kind: StatefulSet") {
				r.set = new(appsv1.StatefulSet)
				to = r.set
			}
		case "service.yaml":
			to = &r.service
			if first, second, found := strings.Cut(text, "\n---\n"); found {
				r.nodes = new(corev1.Service)
				if err := yaml.UnmarshalStrict([]byte(second), r.nodes); err != nil {
					return nil, fmt.Errorf("%s: %w\n%s", name, err, second)
				}
				text = first
			}
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

// A cluster is a StatefulSet whose pods find each other by name before they are ready, with a configuration that is the same for all.
func TestChartCluster(t *testing.T) {
	r, err := render("{gateway: {auth: [x]}, replicas: 3, secret: keys, cluster: {enabled: true, storageClass: fast}}")
	if err != nil {
		t.Fatal(err)
	}
	if r.set == nil || r.nodes == nil {
		t.Fatalf("%+v", r)
	}
	pod := r.set.Spec.Template.Spec
	box := pod.Containers[0]
	if r.set.Spec.ServiceName != r.nodes.Name || !r.nodes.Spec.PublishNotReadyAddresses || r.nodes.Spec.ClusterIP != corev1.ClusterIPNone || r.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("the nodes do not find each other: %+v\n%+v", r.set.Spec, r.nodes.Spec)
	}
	if len(r.nodes.Spec.Selector) == 0 || !maps.Equal(r.nodes.Spec.Selector, r.set.Spec.Selector.MatchLabels) || !slices.ContainsFunc(box.Ports, func(p corev1.ContainerPort) bool { return p.Name == "nodes" && p.ContainerPort == 6222 }) {
		t.Errorf("the service of the nodes: %+v, ports %v", r.nodes.Spec, box.Ports)
	}
	if box.Lifecycle != nil || *pod.TerminationGracePeriodSeconds != 60 || box.StartupProbe.PeriodSeconds*box.StartupProbe.FailureThreshold <= 120 {
		t.Errorf("a node has no time to begin or to end: %+v", pod)
	}
	claim := r.set.Spec.VolumeClaimTemplates[0]
	if claim.Name != "state" || *claim.Spec.StorageClassName != "fast" || claim.Spec.Resources.Requests.Storage().String() != "1Gi" || slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "state" }) {
		t.Errorf("volumes: %+v, %+v", r.set.Spec.VolumeClaimTemplates, pod.Volumes)
	}
	if r.budget.Spec.MaxUnavailable.IntValue() != 1 || r.budget.Spec.MinAvailable != nil {
		t.Errorf("the budget: %+v", r.budget.Spec)
	}
	var file struct {
		Cluster struct {
			NATS, Listen, Store string
			Routes              []string
			Secret              struct{ File string }
		}
	}
	if err := yaml.Unmarshal([]byte(r.config.Data["gateway.yaml"]), &file); err != nil {
		t.Fatal(err)
	}
	c := file.Cluster
	if c.NATS != "embedded" || c.Listen != "0.0.0.0:6222" || c.Store != "/var/lib/patchbay/cluster" || c.Secret.File != "/run/secrets/patchbay/cluster.secret" ||
		!slices.Equal(c.Routes, []string{"nats://team-patchbay-0.team-patchbay-nodes:6222", "nats://team-patchbay-1.team-patchbay-nodes:6222", "nats://team-patchbay-2.team-patchbay-nodes:6222"}) || r.set.Name != "team-patchbay" {
		t.Errorf("gateway.yaml: %+v", c)
	}
	for _, bad := range []string{"replicas: 2, secret: keys", "secret: keys", "replicas: 3", "replicas: 3, secret: keys, claim: disk"} {
		if _, err := render("{gateway: {auth: [x]}, cluster: {enabled: true}, " + bad + "}"); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications") {
			t.Errorf("a cluster of %s: %v", bad, err)
		}
	}
}

// Three nodes have names and volumes of their own, and time to begin and to end.
func TestComposeNodes(t *testing.T) {
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: "../compose.nodes.yaml"}}, Environment: types.Mapping{"VERSION": "1.2.3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		s := p.Services[name]
		if s.Hostname != name || s.Image != "ghcr.io/patchbay-dev/patchbay:1.2.3-node" || s.User != "65532:65532" || !s.ReadOnly || len(s.Volumes) != 2 || s.Volumes[1].Source != name || s.StopGracePeriod.String() != "1m0s" || len(s.Ports) > 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if !strings.Contains(p.Configs["balancer"].Content, "server "+name+":7420;") {
			t.Errorf("the balancer does not know %s: %s", name, p.Configs["balancer"].Content)
		}
	}
	if b := p.Services["balancer"]; b.Ports[0].HostIP != "127.0.0.1" || b.Configs[0].Target != "/etc/nginx/nginx.conf" {
		t.Errorf("%+v", b)
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
