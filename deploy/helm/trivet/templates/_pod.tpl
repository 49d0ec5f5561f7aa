{{- /* A value as text. Helm reads whole numbers as floats, which print as 6.7e+07. */ -}}
{{- define "trivet.text" -}}
{{- if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{- /* Variables that every process has; further ones come from `settings` of the chart, then of the component. */ -}}
{{- define "trivet.env" -}}
{{- $root := .root -}}
{{- $settings := mergeOverwrite (dict) (deepCopy .derived) (deepCopy $root.Values.settings) (deepCopy .settings) -}}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ include "trivet.text" $value | quote }}
{{- end }}
{{- with $root.Values.database }}
{{- if .existingSecret }}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .urlKey }} } }
- name: SECRET_KEYS
  valueFrom: { secretKeyRef: { name: {{ .existingSecret }}, key: {{ .secretKeysKey }} } }
{{- end }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The gateway shares the pod's ports, so the sidecar's port can be changed. */ -}}
{{- define "trivet.sidecarPort" -}}
{{- $settings := mergeOverwrite (dict "HTTP_PORT" 8080) (deepCopy .Values.settings) (deepCopy .Values.sidecar.settings) -}}
{{- include "trivet.text" $settings.HTTP_PORT -}}
{{- end -}}

{{- define "trivet.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile: { type: RuntimeDefault }
{{- if not .Values.openshift }}
fsGroup: {{ int64 .Values.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- end -}}

{{- define "trivet.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- /* Liveness does not depend on the database; the startup probe allows time for migrations. */ -}}
{{- define "trivet.startupAndLivenessProbes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ .port }} }
  periodSeconds: 1
  failureThreshold: {{ .startupSeconds }}
livenessProbe:
  httpGet: { path: /healthz, port: {{ .port }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{- define "trivet.volumeMounts" -}}
- { name: data, mountPath: /data }
- { name: tmp, mountPath: /tmp }
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "trivet.furtherVolumes" -}}
- name: tmp
  emptyDir: { sizeLimit: 256Mi }
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "trivet.scrape" -}}
path: /metrics
interval: {{ .Values.serviceMonitor.interval }}
scrapeTimeout: {{ .Values.serviceMonitor.scrapeTimeout }}
relabelings:
  # The alerts of deploy/prometheus-rules.yaml expect this job. Without it, the job is the name of the Service.
  - targetLabel: job
    replacement: trivet
{{- end -}}
