import { describe, expect, it } from 'vitest';
import type { PodSecurityLevel } from '../../src/api/pod-security.ts';
import type { Namespace, Pod, PodSpec } from '../../src/kube/core-v1.ts';
import type { InformerHandler } from '../../src/kube/informer.ts';
import { nodePowersOf } from '../../src/members/node-powers.ts';
import { PodSecurity } from '../../src/members/pod-security.ts';

const LEVEL = 'pod-security.kubernetes.io/enforce';
const HOST_ID = 'h1';
const PRIVILEGED: PodSpec = { containers: [{ name: 'a', securityContext: { privileged: true } }] };

function pod(namespace: string, name: string, spec: PodSpec, host = HOST_ID): Pod {
  return { metadata: { namespace, name, labels: { 'spillway.dev/host': host } }, spec };
}

function stage(wanted: PodSecurityLevel = 'baseline') {
  const namespaces = new Map<string, Namespace>();
  const handlers = new Set<InformerHandler<Pod>>();
  const state = { hasSynced: true };
  const security = new PodSecurity({
    hostId: HOST_ID,
    pods: {
      on: (handler) => {
        handlers.add(handler);
        return () => handlers.delete(handler);
      },
    },
    namespaces: {
      get: (name) => namespaces.get(name),
      values: () => namespaces.values(),
      get hasSynced() {
        return state.hasSynced;
      },
    },
    wanted: () => wanted,
  });
  const off = security.follow();
  return {
    security,
    state,
    off,
    handlers,
    namespace: (name: string, labels: Record<string, string> = {}) =>
      namespaces.set(name, { metadata: { name, labels } }),
    add: (one: Pod) => handlers.forEach((handler) => handler.added?.(one)),
    update: (one: Pod, old: Pod) => handlers.forEach((handler) => handler.updated?.(one, old)),
    remove: (one: Pod) => handlers.forEach((handler) => handler.deleted?.(one, 'watched')),
  };
}

describe('nodePowersOf', () => {
  it.each<[string, Partial<PodSpec>, string[]]>([
    ['an ordinary pod', {}, []],
    ['flags that are off', { hostPID: false, hostNetwork: false }, []],
    ['each flag', { hostIPC: true, hostPID: true, hostNetwork: true }, ['hostPID', 'hostNetwork', 'hostIPC']],
    ['an init container', { initContainers: PRIVILEGED.containers }, ['privileged']],
    ['one that was added for debugging', { ephemeralContainers: PRIVILEGED.containers }, ['privileged']],
    ...[
      { capabilities: { add: ['SYS_ADMIN'] } },
      { capabilities: { add: ['CHOWN', 'NET_RAW'] } },
      { capabilities: { add: ['ALL'] } },
    ].map((context): [string, Partial<PodSpec>, string[]] => [
      `more than baseline lets add: ${JSON.stringify(context)}`,
      { initContainers: [{ name: 'a', securityContext: context }] },
      ['capabilities'],
    ]),
    ...[
      { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'CHOWN'] }, procMount: 'Default' },
      { capabilities: null, windowsOptions: 7, procMount: undefined },
      { windowsOptions: { hostProcess: false } },
    ].map((context): [string, Partial<PodSpec>, string[]] => [
      `what baseline allows: ${JSON.stringify(context)}`,
      { initContainers: [{ name: 'a', securityContext: context }], securityContext: context },
      [],
    ]),
    ['a whole /proc', { initContainers: [{ name: 'a', securityContext: { procMount: 'Unmasked' } }] }, ['procMount']],
    [
      'a process of a Windows node',
      { initContainers: [{ name: 'a', securityContext: { windowsOptions: { hostProcess: true } } }] },
      ['hostProcess'],
    ],
    ['a pod of such', { securityContext: { windowsOptions: { hostProcess: true } } }, ['hostProcess']],
    [
      'files of nodes',
      {
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 'f', hostPath: { path: '/' } },
        ],
      },
      ['hostPath'],
    ],
  ])('%s', (_, spec, powers) => {
    const containers = [{ name: 'main', securityContext: { privileged: false } }];
    expect(nodePowersOf({ spec: { containers, ...spec } })).toEqual(powers);
  });
});

describe('PodSecurity', () => {
  it('says nothing until namespaces are known, and then that all is well', () => {
    const { security, state } = stage();
    state.hasSynced = false;
    expect(security.finding()).toBeUndefined();
    state.hasSynced = true;
    expect(security.finding()).toMatchObject({ status: 'True', reason: 'LevelsSet' });
  });

  it('counts pods with power over nodes where no level is set, names the namespaces, and ends with them', () => {
    const { security, namespace, add, update, remove } = stage();
    namespace('shop');
    namespace('data', { [LEVEL]: 'nonsense' });
    namespace('meant', { [LEVEL]: 'privileged' });
    const [one, two, three] = [
      pod('shop', 'one', PRIVILEGED),
      pod('shop', 'two', { containers: [], hostPID: true }),
      pod('data', 'three', PRIVILEGED),
    ] as const;
    for (const each of [one, two, three]) add(each);
    add(pod('meant', 'four', PRIVILEGED));
    add(pod('unknown', 'five', PRIVILEGED));
    add(pod('shop', 'of-another-host', PRIVILEGED, 'h2'));
    add({ metadata: { namespace: 'shop', name: 'of-its-owner' }, spec: PRIVILEGED });
    expect(security.finding()).toEqual({
      status: 'False',
      reason: 'NoLevelSet',
      message: expect.stringContaining(
        '3 pods of the host have power over their nodes (hostPID, privileged), in namespaces of the member that set no Pod Security level: data (1), shop (2). ' +
          `The owner of the member says whether that is meant: kubectl label namespace data ${LEVEL}=privileged there`,
      ),
    });
    remove(three);
    update({ ...two, spec: { containers: [] } }, two);
    expect(security.finding()?.message).toMatch(
      /^1 pod of the host has power over its node .* in a namespace .*: shop \(1\)\./,
    );
    namespace('shop', { [LEVEL]: 'privileged' });
    expect(security.finding()).toMatchObject({ status: 'True', reason: 'LevelsSet' });
  });

  it.each(['Succeeded', 'Failed'] as const)('counts no pod that is %s', (phase) => {
    const { security, namespace, add, update } = stage();
    namespace('shop');
    const one = pod('shop', 'one', PRIVILEGED);
    add({ ...one, status: { phase } });
    expect(security.finding()).toMatchObject({ status: 'True', reason: 'LevelsSet' });
    add(one);
    expect(security.finding()?.status).toBe('False');
    update({ ...one, status: { phase } }, one);
    expect(security.finding()?.status).toBe('True');
  });

  it('names five namespaces and counts the rest', () => {
    const { security, namespace, add } = stage();
    for (let index = 0; index < 300; index += 1) {
      namespace(`n-${index}`);
      add(pod(`n-${index}`, 'p', PRIVILEGED));
    }
    const message = security.finding()?.message ?? '';
    expect(message).toContain('n-0 (1), n-1 (1), n-10 (1), n-100 (1), n-101 (1) and 295 more');
    expect(message.length).toBeLessThan(600);
  });

  it('names those that it made and that allow more than new ones would, with the command for their owner', () => {
    const { security, namespace } = stage('baseline');
    const ours = { 'spillway.dev/host': HOST_ID };
    namespace('former', ours);
    namespace('open', { ...ours, [LEVEL]: 'privileged' });
    namespace('as-wanted', { ...ours, [LEVEL]: 'baseline' });
    namespace('stricter', { ...ours, [LEVEL]: 'restricted' });
    namespace('lent', { 'spillway.dev/allow-host': 'any' });
    namespace('of-another-host', { 'spillway.dev/host': 'h2' });
    const finding = security.finding();
    expect(finding).toMatchObject({ status: 'True', reason: 'OtherLevels' });
    expect(finding?.message).toContain(
      '2 namespaces allow more than spec.namespaces.podSecurity (baseline): former (none), open (privileged).',
    );
    expect(finding?.message).toContain(`kubectl label --overwrite namespace former open ${LEVEL}=baseline`);
  });

  it('forgets all when it ends', () => {
    const { security, namespace, add, off, handlers } = stage();
    namespace('shop');
    add(pod('shop', 'one', PRIVILEGED));
    off();
    expect(handlers.size).toBe(0);
    expect(security.finding()).toMatchObject({ reason: 'LevelsSet' });
  });
});
