import type { Pod } from '../src/kube/core-v1.ts';

/** A Deployment's pod as an API server sends it, bound and not yet running; one of many that differ in name only. */
export function samplePod(index: number): Pod {
  const at = '2026-01-01T00:00:00Z';
  const name = `load-7d4b9c5f6-${String(index).padStart(5, '0')}`;
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      generateName: 'load-7d4b9c5f6-',
      namespace: 'bench',
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      resourceVersion: String(1_000 + index),
      generation: 1,
      creationTimestamp: at,
      labels: { app: 'load', 'app.kubernetes.io/part-of': 'bench', 'pod-template-hash': '7d4b9c5f6' },
      annotations: { 'example.com/checksum': '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: 'load-7d4b9c5f6',
          uid: '11111111-1111-4111-8111-111111111111',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [managedFields(at)],
    },
    spec: {
      nodeName: 'member',
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      serviceAccount: 'default',
      schedulerName: 'default-scheduler',
      securityContext: {},
      priority: 0,
      preemptionPolicy: 'PreemptLowerPriority',
      enableServiceLinks: true,
      tolerations: [
        { key: 'spillway.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' },
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
        { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
      containers: [
        {
          name: 'app',
          image: 'registry.example/load:1',
          imagePullPolicy: 'IfNotPresent',
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
          env: [
            { name: 'MODE', value: 'bench' },
            { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
          ],
          resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
          readinessProbe: { httpGet: { path: '/ready', port: 'http', scheme: 'HTTP' }, periodSeconds: 10 },
          volumeMounts: [
            { name: 'scratch', mountPath: '/scratch' },
            {
              name: 'kube-api-access-x7k2p',
              readOnly: true,
              mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
            },
          ],
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      volumes: [
        { name: 'scratch', emptyDir: {} },
        {
          name: 'kube-api-access-x7k2p',
          projected: {
            defaultMode: 420,
            sources: [
              { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
              { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
              {
                downwardAPI: {
                  items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
                },
              },
            ],
          },
        },
      ],
    },
    status: {
      phase: 'Pending',
      qosClass: 'Burstable',
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: at }],
    },
  };
  return pod as Pod;
}

function managedFields(at: string): object {
  const dots = (...names: string[]): object => Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
  return {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'v1',
    time: at,
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:metadata': {
        'f:generateName': {},
        'f:labels': { '.': {}, ...dots('app', 'app.kubernetes.io/part-of', 'pod-template-hash') },
        'f:ownerReferences': { '.': {}, 'k:{"uid":"11111111-1111-4111-8111-111111111111"}': {} },
      },
      'f:spec': {
        'f:containers': {
          'k:{"name":"app"}': {
            '.': {},
            ...dots('image', 'imagePullPolicy', 'name', 'env', 'ports', 'readinessProbe'),
            'f:resources': { '.': {}, ...dots('limits', 'requests') },
            ...dots('terminationMessagePath', 'terminationMessagePolicy', 'volumeMounts'),
          },
        },
        ...dots('dnsPolicy', 'enableServiceLinks', 'restartPolicy', 'schedulerName', 'securityContext'),
        ...dots('terminationGracePeriodSeconds', 'tolerations', 'volumes'),
      },
    },
  };
}
