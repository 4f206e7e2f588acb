{{- /* How pods get what they need to leave the host: Policies or Webhook. */}}
{{- define "spillway.admission" -}}
{{- if ne .Values.admission "Auto" }}{{ .Values.admission }}
{{- else if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version }}Policies
{{- else }}Webhook
{{- end }}
{{- end }}

{{- /* As images are tagged: without what vendors append. */}}
{{- define "spillway.hostVersion" -}}
{{ regexReplaceAll "[-+].*$" .Capabilities.KubeVersion.Version "" }}
{{- end }}

{{- /* The configuration of the manager: as shipped, then what other values take, then .Values.config. */}}
{{- define "spillway.config" -}}
{{- $chosen := dict }}
{{- if ne .Values.hostIdentity "Auto" }}
{{- $_ := set $chosen "hostIdentity" .Values.hostIdentity }}
{{- end }}
{{- if eq (include "spillway.admission" .) "Webhook" }}
{{- $admission := dict "splitNodeConstraints" true "webhook" (dict "enabled" true) }}
{{- if eq .Values.scheduler "Second" }}
{{- $_ := set $admission "schedulerName" "spillway-scheduler" }}
{{- end }}
{{- $_ := set $chosen "admission" $admission }}
{{- end }}
{{- mustMergeOverwrite (.Files.Get "files/config.yaml" | fromYaml) $chosen (deepCopy .Values.config) | toYaml }}
{{- end }}

{{- /* Of every pod of the installation. */}}
{{- define "spillway.pods" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
