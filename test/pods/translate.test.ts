import { describe, expect, test } from 'vitest';
import { stringifyJson, parseJson } from '../../src/kube/json.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { appliedHash } from '../../src/pods/applied.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { boundPod, CONTEXT, frozen, type Loose, madePod, refused, translated } from '../fixtures/translation.ts';

describe('pods as controllers make them', () => {
  test('a pod of a Deployment: only the documented rewrites', () => {
    const host = frozen(madePod('deployment'));
    const member = translated(host, { serviceEnv: [{ name: 'CACHE_SERVICE_HOST', value: '10.96.0.7' }] });
    // Everything the member may see, said as the difference from the host pod.
    const expected = structuredClone(host) as unknown as { metadata: Loose; spec: Loose };
    const { labels, annotations, name } = expected.metadata as { labels: Loose; annotations: Loose; name: string };
    const { uid } = host.metadata;
    expect(member.metadata).toEqual({
      name,
      namespace: 'team-shop',
      labels: {
        ...labels,
        'spillway.dev/host': 'abcdef0123456789',
        'spillway.dev/node': 'east',
        'spillway.dev/uid': uid,
      },
      annotations: {
        ...annotations,
        'spillway.dev/host-namespace': 'shop',
        'spillway.dev/host-name': name,
        'spillway.dev/host-uid': uid,
        'spillway.dev/copied-keys': 'app,pod-template-hash,tier;kubectl.kubernetes.io/restartedAt,prometheus.io/scrape',
        'spillway.dev/applied': appliedHash(host),
      },
    });
    const { spec } = expected as { spec: Record<string, Loose[]> & Loose };
    for (const field of [
      'nodeName',
      'schedulerName',
      'priority',
      'preemptionPolicy',
      'serviceAccountName',
      'serviceAccount',
    ]) {
      delete spec[field];
    }
    spec['automountServiceAccountToken'] = false as never;
    spec['enableServiceLinks'] = false as never;
    const mounts = (container: Loose): Loose => {
      const volumeMounts = (container['volumeMounts'] as Loose[]).filter(
        (m) => !String(m['name']).startsWith('kube-api-access-'),
      );
      const { volumeMounts: _, ...rest } = container;
      return volumeMounts.length === 0 ? rest : { ...rest, volumeMounts };
    };
    const service = { name: 'CACHE_SERVICE_HOST', value: '10.96.0.7' };
    spec['initContainers'] = spec['initContainers']?.map((c) => ({ ...mounts(c), env: [service] })) ?? [];
    spec['containers'] =
      spec['containers']?.map((c) => {
        const env = (c['env'] as Loose[]).map((variable) => {
          if (variable['name'] === 'POD_NAMESPACE') return { name: 'POD_NAMESPACE', value: 'shop' };
          return variable['name'] === 'NODE_NAME' ? { name: 'NODE_NAME', value: 'east' } : variable;
        });
        return { ...mounts(c), env: [service, ...env] };
      }) ?? [];
    spec['volumes'] = spec['volumes']?.filter((v) => !String(v['name']).startsWith('kube-api-access-')) ?? [];
    const all = spec['volumes'].find((v) => v['name'] === 'all') as unknown as {
      projected: { sources: { downwardAPI?: { items: Loose[] } }[] };
    };
    const items = all.projected.sources[1]?.downwardAPI?.items ?? [];
    items[1] = {
      ...items[1],
      fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['spillway.dev/host-namespace']" },
    };
    spec['tolerations'] = [{ key: 'dedicated', operator: 'Equal', value: 'web', effect: 'NoSchedule' }];
    const labelSelector = {
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'pod-template-hash', operator: 'In', values: ['785f58946b'] }],
    };
    spec['topologySpreadConstraints'] = [
      { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector },
    ];
    spec['affinity'] = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }] }],
        },
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector, topologyKey: 'kubernetes.io/hostname' }],
      },
    } as never;
    expect(member.spec).toEqual(spec);
    expect(Object.keys(member).sort()).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
  });

  test('a pod of a StatefulSet keeps its name, hostname, subdomain and index', () => {
    const { metadata, spec } = translated(madePod('statefulSet'));
    expect(metadata['name']).toBe('db-0');
    expect(spec).toMatchObject({
      hostname: 'db-0',
      subdomain: 'db',
      terminationGracePeriodSeconds: 120,
      nodeSelector: { disk: 'ssd' },
      hostAliases: [{ ip: '10.1.2.3', hostnames: ['legacy'] }],
      dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
    });
    expect((spec['containers'] as Loose[])[0]?.['env']).toEqual([
      {
        name: 'ID',
        valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']" } },
      },
    ]);
    expect(spec).not.toHaveProperty('volumes.0');
  });

  test('a pod of a Job: no finalizer, no owner, no rank', () => {
    const { metadata, spec } = translated(madePod('job'));
    expect(metadata).not.toHaveProperty('finalizers');
    expect(metadata).not.toHaveProperty('ownerReferences');
    expect(spec).toMatchObject({ restartPolicy: 'Never' });
    for (const field of ['priority', 'priorityClassName', 'preemptionPolicy']) expect(spec).not.toHaveProperty(field);
  });
});

/** What another virtual node of this kind got wrong: fields and values that must not get lost on the way. */
describe('what pods must not lose', () => {
  const first = (spec: Loose, list = 'containers'): Loose => (spec[list] as Loose[])[0] ?? {};

  test('keeps env from status.podIP, podIPs, hostIP and hostIPs for the member kubelet', () => {
    const env = ['podIP', 'podIPs', 'hostIP', 'hostIPs'].map((field) => ({
      name: field,
      valueFrom: { fieldRef: { fieldPath: `status.${field}` } },
    }));
    expect(first(translated(boundPod({ containers: [{ name: 'app', env }] })).spec)['env']).toEqual(env);
  });
  test('keeps env from resource fields', () => {
    const env = [{ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }];
    expect(first(translated(boundPod({ containers: [{ name: 'app', env }] })).spec)['env']).toEqual(env);
  });
  test('keeps the order of env, and references instead of secret values', () => {
    const env = [
      { name: 'B', value: '1' },
      { name: 'A', value: '$(B)' },
      { name: 'C', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
    ];
    expect(first(translated(boundPod({ containers: [{ name: 'app', env }] })).spec)['env']).toEqual(env);
  });
  test('keeps sidecar restartPolicy', () => {
    const initContainers = [{ name: 'proxy', restartPolicy: 'Always' }];
    expect(first(translated(boundPod({ initContainers })).spec, 'initContainers')).toMatchObject({
      restartPolicy: 'Always',
    });
  });
  test('keeps seccompProfile, hostUsers, grpc probes and resizePolicy', () => {
    const spec = {
      hostUsers: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'app',
          livenessProbe: { grpc: { port: 9000 } },
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
        },
      ],
    };
    expect(translated(boundPod(spec)).spec).toMatchObject(spec);
  });
  test('uses the claims that the host made for generic ephemeral volumes', () => {
    const volumes = [
      { name: 'v', ephemeral: { volumeClaimTemplate: {} } },
      { name: 'w', persistentVolumeClaim: { claimName: 'data', readOnly: true } },
    ];
    expect(translated(boundPod({ volumes })).spec['volumes']).toEqual([
      { name: 'v', persistentVolumeClaim: { claimName: 'web-0-v' } },
      volumes[1],
    ]);
  });
  test('refuses claims that cannot be used in the member', () => {
    const refusal = { reason: 'ClaimElsewhere', message: 'It is in another place.' };
    expect(refused(boundPod({}), { claimRefusal: () => refusal })).toMatchObject(refusal);
  });
  test('refuses resource claims in words instead of dropping them', () => {
    expect(refused(boundPod({ resourceClaims: [{ name: 'gpu' }] })).message).toContain('resource claims');
  });
  test.each(['cephfs', 'rbd', 'cinder', 'iscsi', 'azureFile'])(
    'does not trip over a %s volume without a secret',
    (kind) => {
      const volumes = [
        { name: 'v', [kind]: { monitors: ['a'] } },
        { name: 'w', [kind]: null },
      ];
      expect(translated(boundPod({ volumes })).spec['volumes']).toEqual(volumes);
    },
  );
  test('never sends finalizers', () => {
    const pod = boundPod({}, { finalizers: ['batch.kubernetes.io/job-tracking'] });
    expect(translated(pod).metadata).not.toHaveProperty('finalizers');
  });
  test('sends no name of a PriorityClass or ServiceAccount of the host', () => {
    const { spec } = translated(boundPod({ priorityClassName: 'gold', priority: 1000, serviceAccountName: 'builder' }));
    expect(JSON.stringify(spec)).not.toMatch(/gold|1000|builder/);
  });
  test('keeps int64 values and quantities byte for byte', () => {
    const text =
      '{"metadata":{"name":"a","namespace":"shop","uid":"u"},"spec":{"containers":[{"name":"a","x":9223372036854775807,"resources":{"limits":{"cpu":"0.10"}}}]}}';
    const { spec } = translated(parseJson(text) as Pod);
    expect(stringifyJson(spec['containers'])).toBe(
      '[{"name":"a","x":9223372036854775807,"resources":{"limits":{"cpu":"0.10"}}}]',
    );
  });
});

describe('marks', () => {
  test('a user cannot forge one, neither as label nor as annotation', () => {
    const forged = { 'spillway.dev/host': 'other', 'spillway.dev/uid': 'x', 'spillway.dev/anything': 'y', keep: 'me' };
    const { metadata } = translated(boundPod({}, { labels: forged, annotations: forged }));
    expect(metadata['labels']).toEqual({
      keep: 'me',
      'spillway.dev/host': CONTEXT.hostId,
      'spillway.dev/node': 'east',
      'spillway.dev/uid': boundPod().metadata.uid,
    });
    expect(Object.keys(metadata['annotations'] as Loose).sort()).toEqual([
      'keep',
      'spillway.dev/applied',
      'spillway.dev/copied-keys',
      'spillway.dev/host-name',
      'spillway.dev/host-namespace',
      'spillway.dev/host-uid',
    ]);
  });
  test('annotations for the host alone stay there', () => {
    const annotations = {
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'controller.kubernetes.io/pod-deletion-cost': '-100',
      'kubectl.kubernetes.io/default-container': 'app',
    };
    const { metadata } = translated(boundPod({}, { annotations }));
    expect(metadata['annotations']).toMatchObject({ 'kubectl.kubernetes.io/default-container': 'app' });
    expect(JSON.stringify(metadata)).not.toMatch(/last-applied|deletion-cost/);
  });
  test('a pod that cannot carry marks, or is no pod, is refused', () => {
    expect(refused(boundPod({}, { uid: undefined })).reason).toBe('InvalidPod');
    expect(refused(boundPod(), { nodeName: 'n'.repeat(64) }).reason).toBe('InvalidPod');
    expect(refused(boundPod({ containers: 'none' })).reason).toBe('InvalidPod');
    expect(refused({ metadata: { name: 'x', namespace: 'y', uid: 'z' } } as unknown as Pod).reason).toBe('InvalidPod');
    expect(refused(boundPod({}, { annotations: { 'kubernetes.io/config.mirror': 'x' } })).reason).toBe(
      'StaticPodNotSupported',
    );
  });
});

describe('service account token', () => {
  const injected = {
    name: 'kube-api-access-x7x2z',
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ],
    },
  };
  test('the injected volume and its mounts go before policies see the pod, in every kind of container', () => {
    const container = {
      name: 'a',
      volumeMounts: [
        { name: injected.name, mountPath: '/x' },
        { name: 'own', mountPath: '/y' },
      ],
    };
    const { spec } = translated(
      boundPod({
        containers: [container],
        initContainers: [container],
        volumes: [{ name: 'own', emptyDir: {} }, injected],
      }),
    );
    const rest = { name: 'a', volumeMounts: [{ name: 'own', mountPath: '/y' }] };
    expect(spec).toMatchObject({
      containers: [rest],
      initContainers: [rest],
      volumes: [{ name: 'own', emptyDir: {} }],
    });
  });
  test('what a user wrote under such a name is not taken for it', () => {
    const sources = [...injected.projected.sources, { secret: { name: 'mine' } }];
    expect(refused(boundPod({ volumes: [{ ...injected, projected: { sources } }] })).reason).toBe(
      'ServiceAccountTokenNotAvailable',
    );
    const audience = [{ serviceAccountToken: { path: 't', audience: 'vault' } }];
    expect(refused(boundPod({ volumes: [{ ...injected, projected: { sources: audience } }] })).reason).toBe(
      'ServiceAccountTokenNotAvailable',
    );
    expect(refused(boundPod({ volumes: [{ ...injected, name: 'token' }] })).reason).toBe(
      'ServiceAccountTokenNotAvailable',
    );
    const noToken = { name: injected.name, projected: { sources: [injected.projected.sources[1]] } };
    expect(translated(boundPod({ volumes: [noToken] })).spec['volumes']).toEqual([noToken]);
  });
});

test('ephemeral containers wait for their own subresource', () => {
  const pod = boundPod({ ephemeralContainers: [{ name: 'debug' }] });
  const { metadata, spec } = translated(pod);
  expect(spec).not.toHaveProperty('ephemeralContainers');
  expect((metadata['annotations'] as Loose)['spillway.dev/applied']).not.toBe(appliedHash(pod));
});

test('what did not change is shared, not copied', () => {
  const pod = madePod('deployment');
  const result = translatePod(pod, CONTEXT);
  if (result.kind !== 'pod') throw new Error(result.message);
  expect(result.pod.spec.securityContext).toBe(pod.spec.securityContext);
  expect(result.pod.spec.volumes?.[0]).toBe(pod.spec.volumes?.[0]);
  expect(result.pod.spec.containers[0]?.livenessProbe).toBe(pod.spec.containers[0]?.livenessProbe);
});
