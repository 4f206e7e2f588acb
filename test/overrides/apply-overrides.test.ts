import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { applyOverrides, type OverrideContext } from '../../src/overrides/apply-overrides.ts';
import type { OverrideRefusal } from '../../src/overrides/planned-rules.ts';
import { contextOf, EAST, policy, rendered, webPod } from './rendered-pod.ts';

const POD = rendered();

function apply<T extends KubeObject = Pod>(
  policies: OverridePolicy[],
  object: T = POD as unknown as T,
  context: OverrideContext = contextOf(),
) {
  const outcome = applyOverrides(object, policies, context);
  if (!('object' in outcome)) throw new Error(`not applied: ${stringifyJson(outcome)}`);
  return outcome;
}
function refusal(policies: OverridePolicy[], object: KubeObject = POD, context = contextOf()): OverrideRefusal {
  const outcome = applyOverrides(object, policies, context);
  if (!('refused' in outcome)) throw new Error(`not refused: ${stringifyJson(outcome)}`);
  return outcome.refused;
}
const rules = (...overrideRules: object[]) => ({ overrideRules });
const cluster = (name: string, spec: object) => policy('ClusterOverridePolicy', name, spec);
const namespaced = (name: string, spec: object) => policy('OverridePolicy', name, spec);
const labelled = (value: string, targetCluster?: object) => ({
  ...(targetCluster === undefined ? {} : { targetCluster }),
  overriders: { labelsOverrider: [{ operator: 'add', value: { seen: value } }] },
});
const patched = (...plaintext: object[]) => rules({ overriders: { plaintext } });
const seen = (pod: KubeObject) => pod.metadata.labels?.['seen'];

describe('applyOverrides', () => {
  it('is the same object without policies, and without any that match', () => {
    expect(apply([]).object).toBe(POD);
    const elsewhere = cluster('a', {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Secret' }],
      ...rules(labelled('a')),
    });
    expect(apply([elsewhere])).toEqual({ object: POD, applied: [] });
    expect(apply([elsewhere]).object).toBe(POD);
  });

  it('lets the closer policy win, and the namespace over the cluster', () => {
    const close = cluster('a', {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }],
      ...rules(labelled('close')),
    });
    const wide = cluster('b', rules(labelled('wide')));
    expect(seen(apply([close, wide]).object)).toBe('close');
    expect(seen(apply([wide, close]).object)).toBe('close');
    expect(seen(apply([close, wide, namespaced('a', rules(labelled('own')))]).object)).toBe('own');
  });

  it('applies every rule whose members match, in their order', () => {
    const spec = rules(
      labelled('one'),
      labelled('two', { clusterNames: ['west', 'east'] }),
      labelled('three', { clusterNames: ['west'] }),
      labelled('four', {
        labelSelector: { matchLabels: { tier: 'gold' } },
        fieldSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['eu-1'] }] },
      }),
      labelled('five', { exclude: ['east'] }),
      labelled('six', { fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['eu-1a'] }] } }),
    );
    const { object, applied } = apply([cluster('a', spec)]);
    expect(seen(object)).toBe('four');
    expect(applied.map(({ policy, rule, changes }) => [policy, rule, changes])).toEqual([
      ['ClusterOverridePolicy a', 0, ['labelsOverrider']],
      ['ClusterOverridePolicy a', 1, ['labelsOverrider']],
      ['ClusterOverridePolicy a', 3, ['labelsOverrider']],
    ]);
  });

  it('resolves variables, and tells what they came to', () => {
    const { object, applied } = apply([namespaced('a', rules(labelled('${member.region}')))]);
    expect(seen(object)).toBe('eu-1');
    expect(applied[0]?.overriders.labelsOverrider).toEqual([{ operator: 'add', value: { seen: 'eu-1' } }]);
  });

  it('changes nothing in place and shares what stays', () => {
    const before = structuredClone(POD);
    const { object } = apply([
      cluster(
        'a',
        rules(labelled('x'), { overriders: { plaintext: [{ path: '/spec/hostname', operator: 'add', value: 'h' }] } }),
      ),
    ]);
    expect(POD).toEqual(before);
    expect(object.spec.containers).toBe(POD.spec.containers);
    expect(object.spec.hostname).toBe('h');
  });

  it('keeps numbers that no double can carry', () => {
    const object = parseJson(
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{},"x":12345678901234567890}',
    ) as KubeObject;
    const after = apply([namespaced('a', rules(labelled('x')))], object).object;
    expect(stringifyJson(after)).toContain('"x":12345678901234567890');
  });

  it('asks for labels of owners that decide', () => {
    const byLabel = {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { a: 'b' } } }],
    };
    expect(applyOverrides(POD, [cluster('a', byLabel)], contextOf())).toMatchObject({
      unknown: { kind: 'Deployment', name: 'web' },
    });
  });
});

describe('a refusal', () => {
  it('names policy, path, object and cluster, and what to do', () => {
    const bad = namespaced(
      'eu',
      patched(
        { path: '/spec/hostname', operator: 'add', value: 'h' },
        { path: '/spec/containers/7', operator: 'remove' },
      ),
    );
    expect(refusal([cluster('fine', rules(labelled('x'))), bad])).toEqual({
      policy: 'OverridePolicy shop/eu',
      path: 'overrideRules[0].plaintext[1] at /spec/containers/7',
      message:
        'OverridePolicy shop/eu, overrideRules[0].plaintext[1] at /spec/containers/7: there is nothing at that path, so ' +
        'Pod shop/web-5d4f8-x2x2x cannot be made in cluster "east". This does not pass by itself. Correct the policy.',
    });
  });

  it('comes from variables too', () => {
    expect(refusal([cluster('a', rules(labelled('x'), labelled('${member.color}')))])).toMatchObject({
      policy: 'ClusterOverridePolicy a',
      path: 'overrideRules[1].overriders.labelsOverrider[0].value.seen',
    });
  });

  it('is not for a rule that is for other members', () => {
    const spec = rules({
      targetCluster: { clusterNames: ['west'] },
      overriders: { plaintext: [{ path: '/a/b', operator: 'remove' }] },
    });
    expect(apply([cluster('a', spec)]).applied).toEqual([]);
  });
});

describe('what policies may not change', () => {
  const mark = 'spillway.dev~1uid';
  it.each([
    ['/metadata/labels', 'replace', {}, '/metadata/labels/spillway.dev~1'],
    ['/metadata/labels', 'remove', undefined, '/metadata/labels/spillway.dev~1'],
    ['/metadata/labels', 'replace', 'text', '/metadata/labels'],
    [`/metadata/labels/${mark}`, 'replace', 'other', `/metadata/labels/${mark}`],
    [`/metadata/labels/${mark}`, 'remove', undefined, `/metadata/labels/${mark}`],
    ['/metadata/labels/spillway.dev~1new', 'add', 'x', '/metadata/labels/spillway.dev~1new'],
    ['/metadata/annotations/spillway.dev~1applied', 'replace', 'x', '/metadata/annotations/spillway.dev~1applied'],
    ['/metadata/annotations', 'replace', null, '/metadata/annotations'],
    ['/spec/nodeName', 'add', 'n', '/spec/nodeName'],
    ['/spec', 'replace', { nodeName: 'n' }, '/spec/nodeName'],
    ['/spec', 'replace', [], '/spec'],
    ['/spec', 'remove', undefined, '/spec'],
    ['/spec/containers', 'replace', [], '/spec/containers'],
    ['/spec/containers/0', 'remove', undefined, '/spec/containers'],
    ['/spec/containers/0/name', 'replace', 'other', '/spec/containers'],
  ])('%s %s', (path, operator, value, where) => {
    const overriders = { plaintext: [{ path, operator, ...(value === undefined ? {} : { value }) }] };
    // As from an API server whose CRD is older than this rule of ours.
    const raw = cluster('a', {});
    raw.spec.overrideRules.push({ overriders } as never);
    expect(refusal([raw]).path).toContain(where);
  });

  it('is kept from the overriders of labels as well', () => {
    expect(
      refusal([
        cluster(
          'a',
          rules({ overriders: { labelsOverrider: [{ operator: 'remove', value: { 'spillway.dev/uid': '' } }] } }),
        ),
      ]).path,
    ).toContain(`/metadata/labels/${mark}`);
  });

  it('is the pool that the virtual node stands for', () => {
    const pool = { disk: 'ssd' };
    const context = contextOf(webPod(), { pool });
    const spec = (operator: string, value: object) =>
      rules({ overriders: { nodeSelectorOverrider: [{ operator, value }] } });
    expect(refusal([cluster('a', spec('remove', { disk: '' }))], POD, context).path).toContain(
      '/spec/nodeSelector/disk',
    );
    expect(refusal([cluster('a', spec('add', { disk: 'hdd' }))], POD, context).path).toContain(
      '/spec/nodeSelector/disk',
    );
    expect(apply([cluster('a', spec('add', { zone: 'b' }))], POD, context).object.spec.nodeSelector).toEqual({
      disk: 'ssd',
      zone: 'b',
    });
  });

  it('is the type of a Secret', () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type: 'Opaque', data: {} };
    const spec = patched({ path: '/type', operator: 'replace', value: 'kubernetes.io/tls' });
    const context: OverrideContext = {
      subject: { namespace: 'shop', identities: [{ apiVersion: 'v1', kind: 'Secret', name: 's', labels: {} }] },
      member: EAST,
    };
    expect(refusal([cluster('a', spec)], secret, context)).toMatchObject({
      path: 'overrideRules[0].overriders at /type',
      message: expect.stringContaining('Secret shop/s cannot be made in cluster "east"'),
    });
  });
});

describe('privileges', () => {
  const gain = (...plaintext: object[]) => patched(...plaintext);
  it.each([
    ['host network', gain({ path: '/spec/hostNetwork', operator: 'add', value: true }), 'hostNetwork'],
    [
      'a host path',
      gain({ path: '/spec/volumes', operator: 'add', value: [{ name: 'h', hostPath: { path: '/' } }] }),
      'hostPath "/"',
    ],
    [
      'privileged',
      gain({ path: '/spec/containers/0/securityContext', operator: 'add', value: { privileged: true } }),
      'privileged',
    ],
    ['root', gain({ path: '/spec/securityContext', operator: 'add', value: { runAsUser: 0 } }), 'runAsUser 0'],
    [
      'a capability',
      gain({
        path: '/spec/initContainers/0/securityContext',
        operator: 'add',
        value: { capabilities: { add: ['NET_ADMIN'] } },
      }),
      'capability NET_ADMIN',
    ],
    [
      'a host port',
      gain({ path: '/spec/containers/0/ports', operator: 'add', value: [{ containerPort: 1, hostPort: 80 }] }),
      'hostPort 80',
    ],
    [
      'a probe of another host',
      gain({
        path: '/spec/containers/0/livenessProbe',
        operator: 'add',
        value: { tcpSocket: { host: '10.0.0.1', port: 1 } },
      }),
      'tcpSocket host "10.0.0.1"',
    ],
    [
      'a hook that calls another host',
      gain({
        path: '/spec/containers/0/lifecycle',
        operator: 'add',
        value: { preStop: { httpGet: { host: 'metadata', port: 80 } } },
      }),
      'httpGet host "metadata"',
    ],
    [
      'a container without AppArmor, the old way',
      {
        overrideRules: [
          {
            overriders: {
              annotationsOverrider: [
                { operator: 'add', value: { 'container.apparmor.security.beta.kubernetes.io/app': 'unconfined' } },
              ],
            },
          },
        ],
      },
      'annotation container.apparmor.security.beta.kubernetes.io/app',
    ],
    [
      'a service account',
      gain({ path: '/spec/serviceAccountName', operator: 'add', value: 'admin' }),
      'serviceAccountName "admin"',
    ],
    [
      'a token',
      gain({ path: '/spec/automountServiceAccountToken', operator: 'remove' }),
      'automountServiceAccountToken',
    ],
    [
      'a projected token',
      gain({
        path: '/spec/volumes',
        operator: 'add',
        value: [{ name: 'p', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }],
      }),
      'serviceAccountToken',
    ],
    [
      'a priority',
      gain({ path: '/spec/priorityClassName', operator: 'add', value: 'system-node-critical' }),
      'priorityClassName',
    ],
    [
      'a share of others',
      gain({ path: '/spec/volumes', operator: 'add', value: [{ name: 'v', nfs: { server: '10.0.0.1', path: '/' } }] }),
      'nfs {"path":"/","server":"10.0.0.1"}',
    ],
    [
      'a disk of others',
      gain({
        path: '/spec/volumes',
        operator: 'add',
        value: [{ name: 'v', iscsi: { targetPortal: '10.0.0.1', iqn: 'i', lun: 0 } }],
      }),
      'iscsi {"iqn":"i"',
    ],
    [
      'a driver of the nodes',
      gain({
        path: '/spec/volumes',
        operator: 'add',
        value: [{ name: 'v', flexVolume: { driver: 'x/y', options: { a: 'b' } } }],
      }),
      'flexVolume {"driver":"x/y"',
    ],
    [
      'a type of volume that is not there yet',
      gain({ path: '/spec/volumes', operator: 'add', value: [{ name: 'v', wormhole: 'x' }] }),
      'wormhole "x"',
    ],
    [
      'a Windows account of the domain',
      gain({
        path: '/spec/securityContext',
        operator: 'add',
        value: { windowsOptions: { gmsaCredentialSpecName: 'x' } },
      }),
      'gmsaCredentialSpecName "x"',
    ],
    [
      'one that is written out',
      gain({
        path: '/spec/containers/0/securityContext',
        operator: 'add',
        value: { windowsOptions: { gmsaCredentialSpec: '{}' } },
      }),
      'gmsaCredentialSpec "{}"',
    ],
    [
      'the administrator of Windows containers',
      gain({
        path: '/spec/securityContext',
        operator: 'add',
        value: { windowsOptions: { runAsUserName: 'ContainerAdministrator' } },
      }),
      'runAsUserName "ContainerAdministrator"',
    ],
    [
      'processes of other containers',
      gain({ path: '/spec/shareProcessNamespace', operator: 'add', value: true }),
      'shareProcessNamespace',
    ],
    [
      'a priority by its number',
      gain({ path: '/spec/priority', operator: 'add', value: 2000000000 }),
      'priority 2000000000',
    ],
    [
      'a device that was claimed',
      gain({ path: '/spec/resourceClaims', operator: 'add', value: [{ name: 'a', resourceClaimName: 'of-others' }] }),
      'resourceClaims {"name":"a","resourceClaimName":"of-others"}',
    ],
    [
      'the group of root',
      gain({ path: '/spec/containers/0/securityContext', operator: 'add', value: { runAsGroup: 0 } }),
      'runAsGroup 0',
    ],
    [
      'processes that are shown unmasked',
      gain({ path: '/spec/containers/0/securityContext', operator: 'add', value: { procMount: 'Unmasked' } }),
      'procMount Unmasked',
    ],
    [
      'a setting of the kernel',
      gain({
        path: '/spec/securityContext',
        operator: 'add',
        value: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] },
      }),
      'sysctl net.core.somaxconn',
    ],
    ['processes of the node', gain({ path: '/spec/hostPID', operator: 'add', value: true }), 'hostPID'],
    ['shared memory of the node', gain({ path: '/spec/hostIPC', operator: 'add', value: true }), 'hostIPC'],
    [
      'files of the group of root',
      gain({ path: '/spec/securityContext', operator: 'add', value: { fsGroup: 0 } }),
      'group 0',
    ],
    [
      'the group of root beside others',
      gain({ path: '/spec/securityContext', operator: 'add', value: { supplementalGroups: [7, 0] } }),
      'group 0',
    ],
    [
      'a certificate of the pod',
      gain({
        path: '/spec/volumes',
        operator: 'add',
        value: [{ name: 'p', projected: { sources: [{ podCertificate: { signerName: 'x/y', keyType: 'ED25519' } }] } }],
      }),
      'podCertificate of "x/y"',
    ],
    [
      'what it may become',
      gain({ path: '/spec/containers/0/securityContext', operator: 'add', value: { allowPrivilegeEscalation: true } }),
      'allowPrivilegeEscalation',
    ],
    [
      'all calls of the kernel',
      gain({
        path: '/spec/containers/0/securityContext',
        operator: 'add',
        value: { seccompProfile: { type: 'Unconfined' } },
      }),
      'seccompProfile Unconfined',
    ],
    [
      'a container without AppArmor',
      gain({
        path: '/spec/containers/0/securityContext',
        operator: 'add',
        value: { appArmorProfile: { type: 'Unconfined' } },
      }),
      'appArmorProfile Unconfined',
    ],
    [
      'the same for all of the pod',
      gain({ path: '/spec/securityContext', operator: 'add', value: { appArmorProfile: { type: 'Unconfined' } } }),
      'appArmorProfile Unconfined',
    ],
    [
      'a type of SELinux',
      gain({ path: '/spec/securityContext', operator: 'add', value: { seLinuxOptions: { type: 'spc_t' } } }),
      'seLinuxOptions',
    ],
    [
      'processes of a Windows node',
      gain({
        path: '/spec/containers/0/securityContext',
        operator: 'add',
        value: { windowsOptions: { hostProcess: true } },
      }),
      'hostProcess',
    ],
    [
      'a service account by its old name',
      gain({ path: '/spec/serviceAccount', operator: 'add', value: 'admin' }),
      'serviceAccount "admin"',
    ],
    [
      'a probe of another host at the start',
      gain({
        path: '/spec/containers/0/startupProbe',
        operator: 'add',
        value: { httpGet: { host: '10.0.0.1', port: 1 } },
      }),
      'httpGet host "10.0.0.1"',
    ],
    [
      'one for readiness',
      gain({
        path: '/spec/containers/0/readinessProbe',
        operator: 'add',
        value: { tcpSocket: { host: '10.0.0.1', port: 1 } },
      }),
      'tcpSocket host "10.0.0.1"',
    ],
    [
      'a hook that calls another host at the start',
      gain({
        path: '/spec/containers/0/lifecycle',
        operator: 'add',
        value: { postStart: { tcpSocket: { host: '10.0.0.1', port: 1 } } },
      }),
      'tcpSocket host "10.0.0.1"',
    ],
    [
      'an init container with all of it',
      rules({
        overriders: {
          initContainersOverrider: [{ operator: 'add', value: [{ name: 'x', securityContext: { privileged: true } }] }],
        },
      }),
      'privileged',
    ],
  ])('%s: only from a ClusterOverridePolicy', (_what, spec, name) => {
    expect(refusal([namespaced('a', spec)]).message).toContain(`only a ClusterOverridePolicy may give a pod ${name}`);
    expect(apply([cluster('a', spec)]).applied).toHaveLength(1);
  });

  it('are not more of what it has: an audience, a protocol, a mount, the right to write', () => {
    const made = rendered();
    const log = { name: 'log', mountPath: '/log', readOnly: true, subPath: 'web' };
    const pod = {
      ...made,
      spec: {
        containers: [
          { name: 'app', ports: [{ containerPort: 53, hostPort: 53 }], volumeMounts: [log] },
          { name: 'side' },
        ],
        volumes: [
          { name: 'log', hostPath: { path: '/var/log' } },
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'a' } }] } },
        ],
      },
    };
    const mounts = (index: number, mount: object) => ({
      path: `/spec/containers/${String(index)}/volumeMounts`,
      operator: 'add',
      value: [{ ...log, ...mount }],
    });
    const more: [object, string][] = [
      [mounts(1, {}), 'a mount of hostPath "/var/log" at "web"'],
      [mounts(0, { subPath: '' }), 'a mount of hostPath "/var/log"'],
      [mounts(0, { readOnly: false }), 'a mount of hostPath "/var/log" at "web" to write to'],
      [{ path: '/spec/containers/0/ports/0/protocol', operator: 'add', value: 'UDP' }, 'hostPort 53/UDP'],
      [{ path: '/spec/volumes/0/hostPath/type', operator: 'add', value: 'DirectoryOrCreate' }, 'hostPath {"path"'],
      [
        { path: '/spec/volumes/1/projected/sources/0/serviceAccountToken/audience', operator: 'replace', value: 'b' },
        'serviceAccountToken for "b"',
      ],
    ];
    for (const [step, words] of more) {
      const spec = patched(step);
      const { message } = refusal([namespaced('a', spec)], pod);
      expect(message).toContain(`only a ClusterOverridePolicy may give a pod ${words}`);
      expect(apply([cluster('a', spec)], pod).applied).toHaveLength(1);
    }
    expect(apply([namespaced('a', patched(mounts(0, { mountPath: '/elsewhere' })))], pod).applied).toHaveLength(1);
  });

  it('are none of volumes that any pod may have, nor of the ordinary user of Windows', () => {
    const sources = {
      configMap: { name: 'x' },
      csi: { driver: 'x' },
      downwardAPI: {},
      emptyDir: {},
      ephemeral: {},
      image: { reference: 'x' },
      persistentVolumeClaim: { claimName: 'x' },
      projected: { sources: [{ configMap: { name: 'x' } }] },
      secret: { secretName: 'x' },
      nfs: null,
    };
    const value = Object.entries(sources).map(([type, source]) => ({ name: type.toLowerCase(), [type]: source }));
    const windowsOptions = { runAsUserName: 'ContainerUser' };
    const spec = patched(
      { path: '/spec/volumes', operator: 'add', value },
      { path: '/spec/securityContext', operator: 'add', value: { windowsOptions } },
    );
    expect(apply([namespaced('a', spec)]).applied).toHaveLength(1);
  });

  it('are cut off where they are long', () => {
    const options = { a: 'x'.repeat(10_000) };
    const value = [{ name: 'v', flexVolume: { driver: 'x/y', options } }];
    const spec = patched({ path: '/spec/volumes', operator: 'add', value });
    expect(refusal([namespaced('a', spec)]).message.length).toBeLessThan(1_000);
  });

  it('that the pod has already, or loses, are no matter', () => {
    const root = rendered(webPod({ securityContext: { runAsUser: 0 }, hostNetwork: true }));
    const spec = patched(
      { path: '/spec/securityContext/runAsUser', operator: 'replace', value: 7 },
      { path: '/spec/hostname', operator: 'add', value: 'h' },
    );
    expect(apply([namespaced('a', spec)], root).object.spec.hostNetwork).toBe(true);
  });

  it('given by a cluster policy do not stop one of the namespace', () => {
    const wide = cluster('a', patched({ path: '/spec/hostNetwork', operator: 'add', value: true }));
    expect(seen(apply([wide, namespaced('b', rules(labelled('x')))]).object)).toBe('x');
  });
});

/** As the Restricted level of Pod Security wants it, some of it at the pod and some at each container. */
const tight = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true };
const RESTRICTED = rendered(
  webPod({
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 3000,
      fsGroup: 2000,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    hostUsers: false,
    containers: [
      { name: 'app', image: 'web', securityContext: { ...tight, runAsNonRoot: true } },
      { name: 'side', image: 'side', securityContext: tight },
    ],
    initContainers: [
      {
        name: 'net',
        image: 'istio',
        securityContext: { privileged: true, runAsUser: 0, runAsNonRoot: false, capabilities: { add: ['NET_ADMIN'] } },
      },
    ],
  }),
);

describe('restrictions', () => {
  const container = (index: number, value: object) => ({
    path: `/spec/containers/${String(index)}/securityContext`,
    operator: 'replace',
    value,
  });
  it.each([
    ['all of the pod', [{ path: '/spec/securityContext', operator: 'remove' }], 'fsGroup 2000'],
    ['all of a container', [{ path: '/spec/containers/1/securityContext', operator: 'remove' }], 'Escalation false of'],
    ['that it is not root', [{ path: '/spec/securityContext/runAsNonRoot', operator: 'remove' }], 'runAsNonRoot of'],
    ['that one container is not', [container(0, { ...tight, runAsNonRoot: false })], 'runAsNonRoot of container "app"'],
    ['its user', [{ path: '/spec/securityContext/runAsUser', operator: 'remove' }], 'runAsUser 1000 of'],
    ['its user, for another', [{ path: '/spec/securityContext/runAsUser', operator: 'replace', value: 7 }], '1000'],
    ['the user of one container', [container(1, { ...tight, runAsUser: 7 })], 'runAsUser 1000 of container "side"'],
    ['its group', [{ path: '/spec/securityContext/runAsGroup', operator: 'replace', value: 7 }], 'runAsGroup 3000'],
    ['the group of its files', [{ path: '/spec/securityContext/fsGroup', operator: 'replace', value: 7 }], 'fsGroup'],
    [
      'seccomp',
      [{ path: '/spec/securityContext/seccompProfile', operator: 'remove' }],
      'seccompProfile RuntimeDefault',
    ],
    [
      'what it may become',
      [container(0, { ...tight, allowPrivilegeEscalation: null })],
      'allowPrivilegeEscalation false of container "app"',
    ],
    ['dropped capabilities', [container(0, { ...tight, capabilities: {} })], 'dropped capability ALL of'],
    ['some of them', [container(0, { ...tight, capabilities: { drop: ['NET_RAW'] } })], 'dropped capability ALL of'],
    ['its file system', [container(0, { ...tight, readOnlyRootFilesystem: false })], 'readOnlyRootFilesystem of'],
    ['users of its own', [{ path: '/spec/hostUsers', operator: 'remove' }], 'hostUsers false'],
  ])('%s: taken away only by a ClusterOverridePolicy', (_what, steps, name) => {
    const spec = patched(...steps);
    const { message } = refusal([namespaced('a', spec)], RESTRICTED);
    expect(message).toContain('only a ClusterOverridePolicy may take ');
    expect(message).toContain(name);
    expect(apply([cluster('a', spec)], RESTRICTED).applied).toHaveLength(1);
  });

  it.each([
    ['groups', { supplementalGroups: [7] }, { supplementalGroups: [8] }, 'supplementalGroups [7]'],
    [
      'that groups of the image do not count',
      { supplementalGroupsPolicy: 'Strict' },
      { supplementalGroupsPolicy: 'Merge' },
      'supplementalGroupsPolicy "Strict"',
    ],
    [
      'settings of the kernel',
      { sysctls: [{ name: 'a', value: '1' }] },
      { sysctls: [{ name: 'a', value: '2' }] },
      'sysctls',
    ],
    ['AppArmor', { appArmorProfile: { type: 'RuntimeDefault' } }, {}, 'appArmorProfile RuntimeDefault'],
    [
      'a profile, for another one',
      { seccompProfile: { type: 'Localhost', localhostProfile: 'tight' } },
      { seccompProfile: { type: 'Localhost', localhostProfile: 'lax' } },
      'seccompProfile Localhost "tight"',
    ],
    [
      'a user of Windows',
      { windowsOptions: { runAsUserName: 'ContainerUser' } },
      { windowsOptions: {} },
      'runAsUserName "ContainerUser"',
    ],
  ])('%s that the pod says for all: taken away only by a ClusterOverridePolicy', (_what, before, after, name) => {
    const pod = rendered(webPod({ securityContext: before }));
    const spec = patched({ path: '/spec/securityContext', operator: 'replace', value: after });
    const { message } = refusal([namespaced('a', spec)], pod);
    expect(message).toContain(`only a ClusterOverridePolicy may take ${name}`);
    expect(apply([cluster('a', spec)], pod).applied).toHaveLength(1);
  });

  it('an AppArmor profile too that is said the old way, for another one', () => {
    const key = 'container.apparmor.security.beta.kubernetes.io/app';
    const made = rendered();
    const pod = { ...made, metadata: { ...made.metadata, annotations: { [key]: 'runtime/default' } } };
    const to = (value: string) =>
      rules({ overriders: { annotationsOverrider: [{ operator: 'add', value: { [key]: value } }] } });
    expect(refusal([namespaced('a', to('localhost/lax'))], pod).message).toContain(`take annotation ${key}`);
    expect(apply([namespaced('a', to('runtime/default'))], pod).applied).toHaveLength(1);
    const open = { ...made, metadata: { ...made.metadata, annotations: { [key]: 'unconfined' } } };
    expect(apply([namespaced('a', to('runtime/default'))], open).applied).toHaveLength(1);
  });

  it('sandboxes too', () => {
    const pod = rendered(webPod({ runtimeClassName: 'gvisor' }));
    const to = (operator: string, value?: string) =>
      rules({ overriders: { runtimeClassOverrider: { operator, ...(value !== undefined && { value }) } } });
    expect(refusal([namespaced('a', to('remove'))], pod).message).toContain('runtimeClassName "gvisor"');
    expect(refusal([namespaced('a', to('replace', 'runc'))], pod).message).toContain('runtimeClassName "gvisor"');
    expect(apply([namespaced('a', to('add', 'gvisor'))]).object.spec.runtimeClassName).toBe('gvisor');
  });

  it('a PriorityClass too, as the pod may have been put last by it', () => {
    const made = rendered();
    const pod = { ...made, spec: { ...made.spec, priorityClassName: 'burst-low' } };
    const step = (operator: string, value?: string) =>
      patched({ path: '/spec/priorityClassName', operator, ...(value !== undefined && { value }) });
    expect(refusal([namespaced('a', step('remove'))], pod).message).toContain(
      'only a ClusterOverridePolicy may take priorityClassName "burst-low" from a pod',
    );
    expect(refusal([namespaced('a', step('replace', 'burst-high'))], pod).message).toContain('"burst-high"');
    expect(apply([cluster('a', step('remove'))], pod).object.spec).not.toHaveProperty('priorityClassName');
    expect(apply([cluster('a', step('add', 'x'))], pod).object.spec.priorityClassName).toBe('x');
    expect(apply([namespaced('a', rules(labelled('x')))], pod).object.spec.priorityClassName).toBe('burst-low');
  });

  it('may be added, tightened, and said elsewhere', () => {
    const spec = patched(
      container(0, { ...tight, runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } }),
      { path: '/spec/containers/1/securityContext/capabilities/drop', operator: 'add', value: ['NET_RAW', 'ALL'] },
      { path: '/spec/securityContext/supplementalGroups', operator: 'add', value: [4000] },
    );
    expect(apply([namespaced('a', spec)], RESTRICTED).applied).toHaveLength(1);
    const some = rendered(
      webPod({ containers: [{ name: 'app', securityContext: { capabilities: { drop: ['A', 'B'] } } }] }),
    );
    expect(
      apply([namespaced('a', patched(container(0, { capabilities: { drop: ['ALL'] } })))], some).applied,
    ).toHaveLength(1);
  });

  it('hold for new containers as far as all others have them', () => {
    const pod = rendered(
      webPod({
        containers: [{ name: 'app', securityContext: { ...tight, runAsUser: 1000 } }],
        initContainers: [{ name: 'init', securityContext: tight }],
      }),
    );
    const added = (securityContext: object) =>
      rules({
        overriders: { initContainersOverrider: [{ operator: 'add', value: [{ name: 'x', securityContext }] }] },
      });
    expect(refusal([namespaced('a', added({}))], pod).message).toMatch(/may take .* of container "x" from a pod/);
    expect(apply([namespaced('a', added({ ...tight, runAsUser: 1337 }))], pod).applied).toHaveLength(1);
    expect(apply([namespaced('a', added({}))]).applied).toHaveLength(1);
  });

  it('and privileges are of one container: what an injected one has no other gets', () => {
    for (const [value, name] of [
      [{ ...tight, privileged: true }, 'privileged'],
      [{ ...tight, capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } }, 'capability NET_ADMIN'],
    ] as const) {
      const { message } = refusal([namespaced('a', patched(container(0, value)))], RESTRICTED);
      expect(message).toContain(`may give a pod ${name}`);
    }
    const root = rendered(webPod({ initContainers: [{ name: 'init', securityContext: { runAsUser: 0 } }] }));
    const { message } = refusal(
      [namespaced('a', patched({ ...container(0, { runAsUser: 0 }), operator: 'add' }))],
      root,
    );
    expect(message).toContain('may give a pod runAsUser 0');
    const types = rendered(webPod({ securityContext: { seLinuxOptions: { type: 'container_t' } } }));
    const spec = patched({ path: '/spec/securityContext/seLinuxOptions/type', operator: 'replace', value: 'spc_t' });
    expect(refusal([namespaced('a', spec)], types).message).toContain('seLinuxOptions');
  });
});
