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
{{- end -}}
{{- $stopSeconds := add (int .Values.preStopSeconds) (div (int (default 15000 .Values.settings.STOP_TIMEOUT_MS)) 1000) -}}
{{- if le (int .Values.terminationGracePeriodSeconds) (int $stopSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds must be more than %d: preStopSeconds and STOP_TIMEOUT_MS, or a stop is cut off" (int $stopSeconds)) -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host must be set" -}}
{{- end -}}
{{- if and .Values.sidecar.enabled (not .Values.sidecar.gateway.image) -}}
{{- fail "sidecar.gateway.image must name the image of your gateway" -}}
{{- end -}}
{{- end -}}
