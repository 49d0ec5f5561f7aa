{{- define "trivet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "trivet.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trivet.labels" -}}
{{ include "trivet.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "trivet.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* How many connections to PostgreSQL all processes may have: those of the pool, three for a while, and one process more in a rollout. */ -}}
{{- define "trivet.connections" -}}
{{- $count := 0 -}}
{{- range (include "trivet.components" . | fromJson).items -}}
{{- $processes := ternary .autoscaling.maxReplicas .replicas .autoscaling.enabled -}}
{{- $count = add $count (include "trivet.connectionsOf" (dict "root" $ "processes" $processes "settings" .settings)) -}}
{{- end -}}
{{- with .Values.sidecar -}}
{{- if .enabled -}}
{{- $count = add $count (include "trivet.connectionsOf" (dict "root" $ "processes" .replicas "settings" .settings)) -}}
{{- end -}}
{{- end -}}
{{ $count }}
{{- end -}}

{{- define "trivet.connectionsOf" -}}
{{- $settings := mergeOverwrite (dict "DATABASE_POOL_SIZE" 10) (deepCopy .root.Values.settings) (deepCopy .settings) -}}
{{ mul (add1 (int .processes)) (add 3 (int $settings.DATABASE_POOL_SIZE)) }}
{{- end -}}

{{- define "trivet.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "trivet.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "trivet.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{ .Values.publicUrl }}
{{- else if and .Values.ingress.enabled .Values.ingress.host -}}
{{ ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.host }}
{{- end -}}
{{- end -}}

{{- /* The enabled components as {"items": [...]}: each with its defaults, name, labels and what follows from its parts. */ -}}
{{- define "trivet.components" -}}
{{- $items := list -}}
{{- range $key, $own := .Values.components -}}
{{- if $own.enabled -}}
{{- $name := ternary (include "trivet.fullname" $) (printf "%s-%s" (include "trivet.fullname" $) $key) (eq $key "all") -}}
{{- $derived := dict "key" $key "name" $name "predicts" (has "prediction" $own.parts) "onlyPredicts" (eq (join "," $own.parts) "prediction") -}}
{{- $merged := mergeOverwrite (deepCopy $.Values.componentDefaults) (deepCopy $own) $derived -}}
{{- /* One of maxUnavailable and minAvailable: the budget of a component replaces the default. */ -}}
{{- $budget := default $.Values.componentDefaults.podDisruptionBudget $own.podDisruptionBudget -}}
{{- $items = append $items (set $merged "podDisruptionBudget" $budget) -}}
{{- end -}}
{{- end -}}
{{- dict "items" $items | toJson -}}
{{- end -}}
