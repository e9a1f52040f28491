{{- define "patchbay.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- define "patchbay.nodes" -}}
{{ include "patchbay.name" . | trunc 57 | trimSuffix "-" }}-nodes
{{- end }}
{{- define "patchbay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "patchbay.labels" -}}
{{ include "patchbay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "patchbay.config" -}}
{{- $listen := dict "http" (printf "0.0.0.0:%d" (int .Values.port)) }}
{{- if .Values.metricsPort }}{{ $_ := set $listen "metrics" (printf "0.0.0.0:%d" (int .Values.metricsPort)) }}{{ end }}
{{- $gateway := merge (dict "servers" "mcp.json" "listen" $listen) .Values.gateway -}}
{{- if .Values.cluster.enabled }}
{{- $routes := list }}
{{- range $i := until (int .Values.replicas) }}
{{- $routes = append $routes (printf "nats://%s-%d.%s:%d" (include "patchbay.name" $) $i (include "patchbay.nodes" $) (int $.Values.cluster.port)) }}
{{- end }}
{{- $_ := set $gateway "cluster" (dict "nats" "embedded" "listen" (printf "0.0.0.0:%d" (int .Values.cluster.port)) "routes" $routes "store" "/var/lib/patchbay/cluster" "secret" (dict "file" (printf "/run/secrets/patchbay/%s" .Values.cluster.secret))) }}
{{- end -}}
mcp.json: {{ dict "mcpServers" .Values.servers | toJson | quote }}
gateway.yaml: {{ toYaml $gateway | quote }}
{{- end }}
