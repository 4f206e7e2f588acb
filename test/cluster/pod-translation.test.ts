import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { Workspace } from '../../hack/workspace.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { PODS } from '../../src/kube/resource.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { create, get, patch } from '../../src/kube/verbs.ts';
import { withAccountFiles } from '../../src/pods/account-files.ts';
import { isApplied } from '../../src/pods/applied.ts';
import { memberUpdates, type MemberUpdate } from '../../src/pods/member-updates.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { type OpenApiDocument, structsBelow } from '../fixtures/api-fields.ts';
import { POD_FIELDS_FILE } from '../fixtures/pod-fields.ts';
import { CONTEXT, type Loose, madePod } from '../fixtures/translation.ts';

/** What the API servers of host and member say to translated pods and their updates. Nothing runs. */
let workspace: Workspace;
let host: KubeClient;
let member: KubeClient;

beforeAll(async () => {
  workspace = Workspace.create();
  const clusters = await Promise.all([
    startCluster(workspace, { name: 'host', components: 'api-only' }),
    startCluster(workspace, { name: 'member', components: 'api-only' }),
  ]);
  [host, member] = clusters.map(clientOf) as [KubeClient, KubeClient];
  for (const [cluster, namespace] of [
    [clusters[0], 'shop'],
    [clusters[1], 'team-shop'],
  ] as const) {
    await cluster.api.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await cluster.api.call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {
      metadata: { name: 'default' },
    });
  }
  await clusters[0].api.call('POST', '/api/v1/nodes', {
    metadata: { name: 'east', labels: { 'kubernetes.io/os': 'linux' } },
  });
  const allocatable = { cpu: '64', memory: '64Gi', pods: '110' };
  await clusters[0].api.call('PATCH', '/api/v1/nodes/east/status', { status: { allocatable, capacity: allocatable } });
});
afterAll(async () => {
  await Promise.all([host?.close(), member?.close()]);
  await workspace?.close();
});

function clientOf(cluster: Cluster): KubeClient {
  const { server, ca, cert, key } = cluster.adminAccess;
  return new KubeClient({ cluster: cluster.name, ...staticAccess({ endpoint: { server, ca }, cert, key }) });
}

/** Creates the pod in the host as if bound, translates it, creates it in the member. */
async function offload(pod: Loose): Promise<{ hostPod: Pod; sent: Pod; memberPod: Pod }> {
  const hostPod = await create<Pod>(host, PODS, pod as unknown as Pod);
  const hostPath = { policy: 'Allow' as const, allowedPrefixes: ['/x'] };
  const translation = translatePod(hostPod, { ...CONTEXT, hostPath });
  if (translation.kind === 'refused') throw new Error(translation.message);
  const query = { fieldValidation: 'Strict' };
  const sent = withAccountFiles(translation.pod, hostPod);
  return { hostPod, sent, memberPod: await create<Pod>(member, PODS, sent, { query }) };
}

const send = (pod: Pod, update: MemberUpdate): Promise<Pod> =>
  patch<Pod>(member, PODS, refOf(pod), update.patch, {
    type: update.type,
    ...(update.subresource === undefined ? {} : { subresource: update.subresource }),
  });
const refOf = ({ metadata }: Pod): { namespace: string; name: string } => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name,
});

/** When a new version of Kubernetes fails this: run it with `-u`, then the unit tests say which rows are missing. */
test('the fields that docs and tests know are those of the API', async () => {
  const { gitVersion } = await host.request<{ gitVersion: string }>({ path: '/version' });
  const document = await host.request<OpenApiDocument>({ path: '/openapi/v3/api/v1' });
  const structs = structsBelow(document, 'io.k8s.api.core.v1.Pod');
  expect(Object.keys(structs).length).toBeGreaterThan(100);
  const text = `${JSON.stringify({ version: gitVersion.slice(1), structs }, undefined, 2)}\n`;
  await expect(text).toMatchFileSnapshot(fileURLToPath(POD_FIELDS_FILE));
});

test.each(['deployment', 'statefulSet', 'job'] as const)(
  'a member takes the pod of a %s, and keeps all that was sent',
  async (kind) => {
    const made = madePod(kind) as unknown as { metadata: Loose; spec: Loose };
    const { labels, annotations, name, namespace } = made.metadata;
    const { sent, memberPod } = await offload({
      metadata: { name, namespace, labels, annotations },
      spec: withoutVolatile(made.spec),
    });
    expectAll(memberPod, sent);
    expect(memberPod.metadata).toMatchObject(sent.metadata as unknown as Loose);
    const injected = memberPod.spec.volumes?.filter((volume) => volume.name.startsWith('kube-api-access')) ?? [];
    expect(injected).toHaveLength(1);
    expect(JSON.stringify(injected)).not.toContain('serviceAccountToken');
    expect(memberPod.spec.priority).toBe(0);
  },
);

/** All that was sent is there; the member may have added to it, tolerations of its own for example. */
function expectAll(memberPod: Pod, sent: Pod): void {
  const { tolerations = [], ...spec } = sent.spec;
  expect(memberPod.spec).toMatchObject(spec);
  expect(memberPod.spec.tolerations).toEqual(expect.arrayContaining(tolerations));
}

/** What the host's own admission adds again, or what was merged into selectors when the fixture was made. */
function withoutVolatile(spec: Loose): Loose {
  const text = JSON.stringify(spec, (field: string, value: unknown) => {
    if (field === 'matchExpressions' && JSON.stringify(value).includes('pod-template-hash')) return undefined;
    if (Array.isArray(value))
      return value.filter((item) => !String((item as Loose | null)?.['name']).startsWith('kube-api-access'));
    return value;
  });
  const { priority: _, preemptionPolicy: __, ...rest } = JSON.parse(text) as Loose;
  return rest;
}

test('a pod that uses every kind of field arrives whole', async () => {
  const probe = {
    exec: { command: ['true'] },
    initialDelaySeconds: 1,
    timeoutSeconds: 2,
    periodSeconds: 3,
    failureThreshold: 4,
    terminationGracePeriodSeconds: 5,
  };
  const { sent, memberPod } = await offload({
    metadata: { name: 'everything', namespace: 'shop', labels: { app: 'x' }, annotations: { a: 'b' } },
    spec: {
      nodeName: 'east',
      activeDeadlineSeconds: 3600,
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['10.0.0.10'], searches: ['a.example'], options: [{ name: 'ndots', value: '1' }] },
      hostAliases: [{ ip: '10.1.1.1', hostnames: ['h'] }],
      hostUsers: false,
      hostname: 'h',
      subdomain: 's',
      setHostnameAsFQDN: true,
      os: { name: 'linux' },
      resources: { limits: { cpu: '2', memory: '1Gi' } },
      restartPolicy: 'Always',
      securityContext: {
        runAsUser: 1,
        runAsGroup: 2,
        fsGroup: 3,
        fsGroupChangePolicy: 'OnRootMismatch',
        supplementalGroups: [4],
        supplementalGroupsPolicy: 'Strict',
        sysctls: [{ name: 'kernel.shm_rmid_forced', value: '0' }],
        seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' },
        appArmorProfile: { type: 'RuntimeDefault' },
      },
      shareProcessNamespace: true,
      terminationGracePeriodSeconds: 7,
      readinessGates: [{ conditionType: 'x.example/ready' }],
      tolerations: [{ operator: 'Exists' }],
      initContainers: [
        {
          name: 'side',
          image: 'i',
          restartPolicy: 'Always',
          startupProbe: probe,
          lifecycle: { preStop: { sleep: { seconds: 1 } } },
        },
        { name: 'first', image: 'i', command: ['true'] },
      ],
      containers: [
        {
          name: 'app',
          image: 'i',
          imagePullPolicy: 'Never',
          workingDir: '/w',
          stdin: true,
          stdinOnce: true,
          tty: true,
          ports: [{ name: 'p', containerPort: 80, hostPort: 8080, hostIP: '127.0.0.2', protocol: 'UDP' }],
          resources: {
            requests: { cpu: '1', memory: '1Mi', 'ephemeral-storage': '1Mi' },
            limits: { cpu: '1', memory: '1Mi', 'ephemeral-storage': '1Mi' },
          },
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
          restartPolicy: 'Never',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
          livenessProbe: probe,
          readinessProbe: { ...probe, terminationGracePeriodSeconds: undefined },
          lifecycle: { postStart: { httpGet: { path: '/', port: 'p' } }, stopSignal: 'SIGUSR1' },
          terminationMessagePath: '/m',
          terminationMessagePolicy: 'FallbackToLogsOnError',
          securityContext: {
            capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
            readOnlyRootFilesystem: true,
            procMount: 'Unmasked',
            allowPrivilegeEscalation: true,
          },
          volumeMounts: [
            { name: 'empty', mountPath: '/e', subPathExpr: '$(X)', mountPropagation: 'None' },
            { name: 'host', mountPath: '/h', readOnly: true, recursiveReadOnly: 'IfPossible' },
          ],
          env: [
            { name: 'X', value: 'y' },
            { name: 'IPS', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } },
          ],
        },
      ],
      volumes: [
        { name: 'empty', emptyDir: {} },
        { name: 'host', hostPath: { path: '/x', type: 'Directory' } },
        {
          name: 'csi',
          csi: { driver: 'd.example', nodePublishSecretRef: { name: 's' }, volumeAttributes: { a: 'b' } },
        },
        { name: 'nfs', nfs: { server: 's', path: '/' } },
        { name: 'image', image: { reference: 'r.example/i:1', pullPolicy: 'Never' } },
        { name: 'ctb', projected: { sources: [{ clusterTrustBundle: { name: 'b', path: 'p' } }] } },
      ],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [{ key: 'gpu', operator: 'Gt', values: ['1'] }],
                matchFields: [{ key: 'metadata.name', operator: 'In', values: ['east'] }],
              },
            ],
          },
        },
      },
    },
  });
  expectAll(memberPod, sent);
});

test('every kind of change reaches the member pod, and then none is left', async () => {
  const container = { name: 'app', image: 'i:1', resources: { requests: { cpu: '100m' }, limits: { cpu: '1' } } };
  let { hostPod, memberPod } = await offload({
    metadata: { name: 'changing', namespace: 'shop', labels: { app: 'x', gone: '1' }, annotations: { old: '1' } },
    spec: { nodeName: 'east', tolerations: [{ key: 'a', operator: 'Exists' }], containers: [container] },
  });
  const change = async (body: Loose, subresource?: string): Promise<void> => {
    hostPod = await patch<Pod>(host, PODS, refOf(hostPod), body, {
      type: 'strategic',
      ...(subresource === undefined ? {} : { subresource }),
    });
    hostPod = await get<Pod>(host, PODS, refOf(hostPod));
  };
  await change({
    metadata: { labels: { app: 'y', gone: null }, annotations: { old: null, new: '1' } },
    spec: {
      activeDeadlineSeconds: 60,
      containers: [{ name: 'app', image: 'i:2' }],
      tolerations: [...(hostPod.spec.tolerations ?? []), { key: 'b', operator: 'Exists' }],
    },
  });
  await change(
    { spec: { ephemeralContainers: [{ name: 'debug', image: 'd', targetContainerName: 'app' }] } },
    'ephemeralcontainers',
  );
  await change(
    { spec: { containers: [{ name: 'app', resources: { requests: { cpu: '200m' }, limits: { cpu: '2' } } }] } },
    'resize',
  );
  await patch(member, PODS, refOf(memberPod), { metadata: { labels: { injected: 'by-member' } } }, { type: 'merge' });

  const updates = memberUpdates(hostPod, memberPod, CONTEXT);
  expect(updates.map(({ kind }) => kind)).toEqual(['ephemeralcontainers', 'resize', 'patch']);
  for (const update of updates) memberPod = await send(memberPod, update);
  expect(isApplied(hostPod, memberPod)).toBe(true);
  expect(memberUpdates(hostPod, memberPod, CONTEXT)).toEqual([]);
  const { metadata, spec } = await get<Pod>(member, PODS, refOf(memberPod));
  expect(metadata.labels).toMatchObject({ app: 'y', injected: 'by-member', 'spillway.dev/host': CONTEXT.hostId });
  expect(metadata.labels).not.toHaveProperty('gone');
  expect(metadata.annotations).toMatchObject({ new: '1' });
  expect(metadata.annotations).not.toHaveProperty('old');
  expect(spec).toMatchObject({
    activeDeadlineSeconds: 60,
    containers: [{ name: 'app', image: 'i:2', resources: { requests: { cpu: '200m' }, limits: { cpu: '2' } } }],
    ephemeralContainers: [{ name: 'debug', image: 'd', targetContainerName: 'app' }],
  });
  // The member's own defaults, and both of the user's.
  expect(spec.tolerations?.map(({ key }) => key).sort()).toEqual([
    'a',
    'b',
    'node.kubernetes.io/not-ready',
    'node.kubernetes.io/unreachable',
  ]);
});

test('no patch reaches another pod of the same name', async () => {
  const { hostPod, memberPod } = await offload({
    metadata: { name: 'replaced', namespace: 'shop' },
    spec: { nodeName: 'east', containers: [{ name: 'app', image: 'i:1', resources: { limits: { cpu: '1' } } }] },
  });
  const now: Pod = {
    ...hostPod,
    spec: {
      ...hostPod.spec,
      containers: [{ name: 'app', image: 'i:2', resources: { limits: { cpu: '2' } } }],
      ephemeralContainers: [{ name: 'debug', image: 'd' }],
    },
  };
  const former: Pod = {
    ...memberPod,
    metadata: { ...memberPod.metadata, uid: '00000000-0000-0000-0000-000000000000' },
  };
  for (const update of memberUpdates(now, former, CONTEXT)) {
    const error = await send(memberPod, update).then(
      () => undefined,
      (e: unknown) => e,
    );
    expect(error, update.kind).toBeInstanceOf(ApiError);
    expect((error as ApiError).code, update.kind).toBe(422);
    expect((error as ApiError).message, update.kind).toContain('metadata.uid');
  }
  expect((await get<Pod>(member, PODS, refOf(memberPod))).metadata.resourceVersion).toBe(
    memberPod.metadata.resourceVersion,
  );
});
