{{- /* Combinations that would lose data or not start, refused before anything is applied. */ -}}
{{- define "trivet.checks" -}}
{{- $components := (include "trivet.components" . | fromJson).items -}}
{{- if not (or $components .Values.sidecar.enabled) -}}
{{- fail "nothing is enabled: enable a component or the sidecar" -}}
{{- end -}}
{{- $parts := list -}}
{{- range $components -}}
{{- $parts = concat $parts .parts -}}
{{- if and (not $.Values.database.existingSecret) (or (gt (int .replicas) 1) .autoscaling.enabled) -}}
{{- fail (printf "components.%s: the embedded store has one process; set database.existingSecret to run several" .key) -}}
{{- end -}}
{{- end -}}
{{- if and (gt (len $components) 1) (not .Values.database.existingSecret) -}}
{{- fail "several components share what they know over a database: set database.existingSecret" -}}
{{- end -}}
{{- if ne (len $parts) (len (uniq $parts)) -}}
{{- fail "a part runs in two components: disable components.all, or the others" -}}
{{- end -}}
{{- if .Values.llmD.enabled -}}
{{- if not (has "prediction" $parts) -}}
{{- fail "llmD needs a component with the part prediction" -}}
{{- end -}}
{{- if not .Values.llmD.model -}}
{{- fail "llmD.model must name the target model of the port" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.llmD.routerLabels) (not .Values.llmD.from) -}}
{{- fail "llmD.routerLabels or llmD.from must name the router: its port needs no token, and without them the policy would admit every pod of the namespace" -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "STOP_TIMEOUT_MS" "DATABASE_POOL_SIZE") -}}
{{- fail (printf "extraEnv: the chart computes with %s: put it in settings, or in the settings of a component" .name) -}}
{{- end -}}
{{- end -}}
{{- range $components -}}
{{- $stop := dict "key" (printf "components.%s" .key) "preStop" $.Values.preStopSeconds "settings" .settings "delivers" (has "webhooks" .parts) -}}
{{- include "trivet.checkStop" (set $stop "root" $) -}}
{{- $fixed := list "HOST" "HTTP_PORT" "GRPC_PORT" "LLM_D_PORT" "TRIVET_DATA_DIR" "PARTS" -}}
{{- include "trivet.checkFixed" (dict "root" $ "key" (printf "components.%s" .key) "settings" .settings "fixed" $fixed) -}}
{{- end -}}
{{- if .Values.sidecar.enabled -}}
{{- include "trivet.checkStop" (dict "root" . "key" "sidecar" "preStop" 0 "settings" .Values.sidecar.settings "delivers" false) -}}
{{- $fixed := list "HOST" "GRPC_UNIX_SOCKET" "TRIVET_DATA_DIR" "PARTS" -}}
{{- include "trivet.checkFixed" (dict "root" . "key" "sidecar" "settings" .Values.sidecar.settings "fixed" $fixed) -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "HTTP_PORT" -}}
{{- fail "sidecar: HTTP_PORT in extraEnv would leave the probes at another port: put it in sidecar.settings" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.serverAutoscaling -}}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$" .model) -}}
{{- fail (printf "serverAutoscaling: the model %s cannot be the value of a label; use KEDA for it, as in deploy/kubernetes/autoscaling-keda.yaml" .model) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host must be set" -}}
{{- end -}}
{{- if and .Values.sidecar.enabled (not .Values.sidecar.gateway.image) -}}
{{- fail "sidecar.gateway.image must name the image of your gateway" -}}
{{- end -}}
{{- end -}}

{{- /* Calls under way may take STOP_TIMEOUT_MS, and attempts of deliveries, with the storing of their results, 20 s at the same time. */ -}}
{{- define "trivet.checkStop" -}}
{{- $settings := mergeOverwrite (dict "STOP_TIMEOUT_MS" 15000) (deepCopy .root.Values.settings) (deepCopy .settings) -}}
{{- $work := divf (float64 $settings.STOP_TIMEOUT_MS) 1000 | ceil | int -}}
{{- if .delivers -}}
{{- $work = max $work 20 -}}
{{- end -}}
{{- $seconds := add (int .preStop) (int $work) -}}
{{- if le (int .root.Values.terminationGracePeriodSeconds) (int $seconds) -}}
{{- fail (printf "%s: terminationGracePeriodSeconds must be more than %d, or a stop is cut off: preStopSeconds, and then STOP_TIMEOUT_MS, at least 20 s with the part webhooks" .key (int $seconds)) -}}
{{- end -}}
{{- end -}}

{{- /* Probes, Services, volumes and policies name these: a setting that moved one would leave the pod unready, or lose what it stores. */ -}}
{{- define "trivet.checkFixed" -}}
{{- $names := keys .root.Values.settings .settings -}}
{{- range .root.Values.extraEnv -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range .fixed -}}
{{- if has . $names -}}
{{- fail (printf "%s: %s is the chart's: probes, Services and volumes depend on it. Parts are those of the component, and llmD.port is the port of llm-d" $.key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
