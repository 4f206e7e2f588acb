import { describe, expect, test } from 'vitest';
import { applyMergePatch } from '../fixtures/apply-merge-patch.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { APPLIED_ANNOTATION, appliedHash, isApplied } from '../../src/pods/applied.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { boundPod, CONTEXT, frozen, type Loose, madePod, translated } from '../fixtures/translation.ts';

/** The member pod as its API server has it, from what was created, plus what the member did to it. */
function running(host: Pod, drift: Loose = {}): Pod {
  const made = translated(host);
  const metadata = { ...made.metadata, uid: 'member-uid', resourceVersion: '7' };
  return frozen(applyMergePatch({ ...made, metadata }, drift) as Pod);
}
const changed = (host: Pod, change: Loose): Pod => applyMergePatch(host, change) as Pod;
const applied = (host: Pod): Loose => ({ [APPLIED_ANNOTATION]: appliedHash(host) });
const UID = { uid: 'member-uid' };

test('nothing to send for a pod as it was created', () => {
  for (const host of [boundPod(), madePod('deployment'), madePod('statefulSet'), madePod('job')]) {
    expect(isApplied(host, running(host))).toBe(true);
    expect(memberUpdates(host, running(host), CONTEXT)).toEqual([]);
  }
});

test('the mark does not depend on the order of fields, nor on status, nor on host-only annotations', () => {
  const host = boundPod({}, { labels: { a: '1', b: '2' }, resourceVersion: '1' });
  const same = changed(boundPod({}, { labels: { b: '2', a: '1' }, resourceVersion: '2' }), {
    status: { phase: 'Running' },
    metadata: {
      annotations: { 'spillway.dev/x': 'y', 'controller.kubernetes.io/pod-deletion-cost': '5' },
      finalizers: ['x'],
    },
    spec: { tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }] },
  });
  expect(appliedHash(same)).toBe(appliedHash(host));
});

/** Written down: a change here means that every running pod would be patched after an upgrade. */
test('the mark stays what it was in earlier versions', () => {
  expect(appliedHash(boundPod())).toMatchInlineSnapshot(
    `"v1:k8mgxlyt5.gblsg8edy.csyfbxt8a.civi05126.kyikafzsjcsyfbxt8a"`,
  );
  expect(appliedHash(madePod('deployment'))).toMatchInlineSnapshot(
    `"v1:5ipmp2vwu.mv1m84u8r.csyfbxt8a.civi05126.mjbrvnoy50z1htcgyv.dndsl0mvi0z1htcgyv.g9wusscjflj7jrikjw"`,
  );
});

test('what tells the scheduler of the host whom to ask stays there, also when the pod is resized', () => {
  const mark = { 'spillway.dev/extender': '0' };
  const host = boundPod({
    containers: [
      { name: 'a', image: 'a:1', resources: { requests: { cpu: '1', ...mark }, limits: mark } },
      { name: 'b', image: 'b:1', resources: { requests: mark, limits: mark } },
    ],
  });
  const { containers } = running(host).spec;
  expect(containers.map(({ resources }) => resources)).toEqual([{ requests: { cpu: '1' } }, {}]);
  const now = changed(host, {
    spec: {
      containers: [
        { name: 'a', image: 'a:1', resources: { requests: { cpu: '2', ...mark }, limits: mark } },
        { name: 'b', image: 'b:1', resources: { requests: mark, limits: mark } },
      ],
    },
  });
  const [resize] = memberUpdates(now, running(host), CONTEXT);
  expect(resize?.patch).toMatchObject({ spec: { containers: [{ name: 'a', resources: { requests: { cpu: '2' } } }] } });
  expect(JSON.stringify(resize?.patch)).not.toContain('spillway.dev/extender');
});

describe('one patch', () => {
  test('images, by container name', () => {
    const host = boundPod({
      initContainers: [{ name: 'init', image: 'i:1' }],
      containers: [
        { name: 'a', image: 'a:1' },
        { name: 'b', image: 'b:1' },
      ],
    });
    const now = changed(host, {
      spec: {
        initContainers: [{ name: 'init', image: 'i:2' }],
        containers: [
          { name: 'a', image: 'a:1' },
          { name: 'b', image: 'b:2' },
        ],
      },
    });
    expect(memberUpdates(now, running(host), CONTEXT)).toEqual([
      {
        kind: 'patch',
        type: 'strategic',
        patch: {
          metadata: { ...UID, annotations: applied(now) },
          spec: { initContainers: [{ name: 'init', image: 'i:2' }], containers: [{ name: 'b', image: 'b:2' }] },
        },
      },
    ]);
  });
  test('activeDeadlineSeconds', () => {
    const now = boundPod({ activeDeadlineSeconds: 60 });
    expect(memberUpdates(now, running(boundPod()), CONTEXT)[0]?.patch).toEqual({
      metadata: { ...UID, annotations: applied(now) },
      spec: { activeDeadlineSeconds: 60 },
    });
  });
  test('new tolerations and new seconds, on top of what the member has', () => {
    const old = { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };
    const own = {
      key: 'node.kubernetes.io/not-ready',
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 300,
    };
    const host = boundPod({ tolerations: [old] });
    const member = running(host, { spec: { tolerations: [old, own] } });
    const now = boundPod({
      tolerations: [
        { ...old, tolerationSeconds: 90 },
        { key: 'b', operator: 'Exists' },
      ],
    });
    expect(memberUpdates(now, member, CONTEXT)[0]?.patch).toMatchObject({
      spec: { tolerations: [{ ...old, tolerationSeconds: 90 }, own, { key: 'b', operator: 'Exists' }] },
    });
  });
  test('labels and annotations: set, changed, removed, and only those that we copied', () => {
    const host = boundPod({}, { labels: { keep: '1', change: '1', gone: '1' }, annotations: { note: 'x', old: 'y' } });
    const member = running(host, {
      metadata: { labels: { injected: 'by-member' }, annotations: { 'mesh/status': 'ok' } },
    });
    const now = boundPod({}, { labels: { keep: '1', change: '2', constructor: 'z' }, annotations: { note: 'x' } });
    expect(memberUpdates(now, member, CONTEXT)).toEqual([
      {
        kind: 'patch',
        type: 'strategic',
        patch: {
          metadata: {
            ...UID,
            labels: { gone: null, change: '2', constructor: 'z' },
            annotations: { old: null, 'spillway.dev/copied-keys': 'keep,change,constructor;note', ...applied(now) },
          },
        },
      },
    ]);
  });
  test('a user cannot have a mark changed or removed', () => {
    const host = boundPod({}, { labels: { app: 'web' } });
    const now = boundPod({}, { labels: { app: 'web2', 'spillway.dev/uid': 'forged', 'spillway.dev/host': 'forged' } });
    const [update] = memberUpdates(now, running(host), CONTEXT);
    expect(JSON.stringify(update)).not.toContain('forged');
    expect(update?.patch).toMatchObject({ metadata: { labels: { app: 'web2' } } });
  });
});

test('the zone and region that a pod got when it was bound in the member stay, whatever it got in the host', () => {
  const ofNode = { 'topology.kubernetes.io/zone': 'east', 'topology.kubernetes.io/region': 'eu' };
  const host = boundPod({}, { labels: { app: 'web', ...ofNode } });
  const member = running(host, { metadata: { labels: { 'topology.kubernetes.io/zone': 'eu-1a' } } });
  const [update] = memberUpdates(boundPod({}, { labels: { app: 'web2', ...ofNode } }), member, CONTEXT);
  expect(update?.patch).toMatchObject({ metadata: { labels: { app: 'web2' } } });
  expect(JSON.stringify(update)).not.toContain('"topology.kubernetes.io/zone"');
  const [moved] = memberUpdates(boundPod({}, { labels: { app: 'web2' } }), member, CONTEXT);
  expect(JSON.stringify(moved)).not.toContain('"topology.kubernetes.io/');
});

describe('what the member changed by itself is not fought', () => {
  const host = boundPod(
    {
      containers: [
        { name: 'a', image: 'a:1' },
        { name: 'b', image: 'b:1' },
      ],
    },
    { labels: { app: 'x' } },
  );
  const rewritten = running(host, {
    spec: {
      containers: [
        { name: 'a', image: 'mirror/a:1' },
        { name: 'b', image: 'mirror/b:1' },
        { name: 'sidecar', image: 'mesh:1' },
      ],
    },
  });
  test('nothing is sent while the host pod is as it was', () => {
    expect(memberUpdates(host, rewritten, CONTEXT)).toEqual([]);
  });
  test('a new label sends no image', () => {
    const [update, ...more] = memberUpdates(changed(host, { metadata: { labels: { app: 'y' } } }), rewritten, CONTEXT);
    expect(more).toEqual([]);
    expect(update?.patch).not.toHaveProperty('spec');
  });
  test('a new image sends that image only, with a sidecar that the member injected', () => {
    const now = changed(host, {
      spec: {
        containers: [
          { name: 'a', image: 'a:2' },
          { name: 'b', image: 'b:1' },
        ],
      },
    });
    expect(memberUpdates(now, rewritten, CONTEXT)[0]?.patch['spec']).toEqual({
      containers: [{ name: 'a', image: 'a:2' }],
    });
  });
});

describe('subresources come first, the record last', () => {
  test('ephemeral containers, translated', () => {
    const host = madePod('deployment');
    const debug = {
      name: 'debug',
      image: 'busybox',
      env: [{ name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
    };
    const now = changed(host, { spec: { ephemeralContainers: [debug] } });
    const serviceEnv = [{ name: 'DB_SERVICE_HOST', value: '10.96.0.9' }];
    const updates = memberUpdates(now, running(host), { ...CONTEXT, serviceEnv });
    expect(updates).toEqual([
      {
        kind: 'ephemeralcontainers',
        type: 'strategic',
        subresource: 'ephemeralcontainers',
        patch: {
          metadata: UID,
          spec: { ephemeralContainers: [{ ...debug, env: [...serviceEnv, { name: 'NS', value: 'shop' }] }] },
        },
      },
      { kind: 'patch', type: 'strategic', patch: { metadata: { ...UID, annotations: applied(now) } } },
    ]);
  });
  test('only the new one of several, and none twice', () => {
    const one = boundPod({ ephemeralContainers: [{ name: 'one' }] });
    const two = boundPod({ ephemeralContainers: [{ name: 'one' }, { name: 'two' }] });
    const member = running(boundPod(), { spec: { ephemeralContainers: [{ name: 'one' }] } });
    expect(memberUpdates(two, member, CONTEXT)[0]?.patch['spec']).toEqual({ ephemeralContainers: [{ name: 'two' }] });
    expect(memberUpdates(one, member, CONTEXT).map(({ kind }) => kind)).toEqual(['patch']);
  });
  test('a pod that had one before it was copied gets it right after', () => {
    const host = boundPod({ ephemeralContainers: [{ name: 'debug' }] });
    expect(memberUpdates(host, running(host), CONTEXT).map(({ kind }) => kind)).toEqual([
      'ephemeralcontainers',
      'patch',
    ]);
  });
  test('a resize sends the amounts that differ, by container and for the pod', () => {
    const of = (cpu: string, pod: string): Pod =>
      boundPod({
        containers: [{ name: 'a', resources: { requests: { cpu, memory: '1Gi' }, limits: { cpu } } }, { name: 'b' }],
        initContainers: [{ name: 'side', restartPolicy: 'Always', resources: { limits: { cpu } } }],
        resources: { limits: { cpu: pod } },
      });
    const now = of('2', '4');
    expect(memberUpdates(now, running(of('1', '3')), CONTEXT)).toEqual([
      {
        kind: 'resize',
        type: 'strategic',
        subresource: 'resize',
        patch: {
          metadata: UID,
          spec: {
            initContainers: [{ name: 'side', resources: { limits: { cpu: '2' } } }],
            containers: [{ name: 'a', resources: { requests: { cpu: '2' }, limits: { cpu: '2' } } }],
            resources: { limits: { cpu: '4' } },
          },
        },
      },
      { kind: 'patch', type: 'strategic', patch: { metadata: { ...UID, annotations: applied(now) } } },
    ]);
  });
});

describe('marks that say nothing', () => {
  const host = boundPod({ containers: [{ name: 'a', image: 'a:1' }] });
  test('of another version: left alone', () => {
    const member = running(host, {
      metadata: { annotations: { [APPLIED_ANNOTATION]: 'v9:whatever' } },
      spec: { containers: [{ name: 'a', image: 'b' }] },
    });
    expect(isApplied(host, member)).toBe(true);
    expect(memberUpdates(host, member, CONTEXT)).toEqual([]);
  });
  test.each([null, 'v1:', 'v1:x.y', ''])('missing or damaged (%j): only the mark is written', (mark) => {
    const member = running(host, {
      metadata: { annotations: { [APPLIED_ANNOTATION]: mark } },
      spec: { containers: [{ name: 'a', image: 'b' }] },
    });
    if (mark === '') expect(isApplied(host, member)).toBe(true);
    else {
      expect(isApplied(host, member)).toBe(false);
      expect(memberUpdates(host, member, CONTEXT)).toEqual([
        { kind: 'patch', type: 'strategic', patch: { metadata: { ...UID, annotations: applied(host) } } },
      ]);
    }
  });
});

test('after all updates the pod counts as applied', () => {
  const host = madePod('deployment');
  const now = changed(host, {
    metadata: { labels: { tier: 'back' }, annotations: { 'prometheus.io/scrape': null } },
    spec: { activeDeadlineSeconds: 5 },
  });
  const member = running(host);
  const last = memberUpdates(now, member, CONTEXT).at(-1);
  const after = applyMergePatch(member, { metadata: (last?.patch ?? {})['metadata'] }) as Pod;
  expect(isApplied(now, after)).toBe(true);
  expect(after.metadata.labels).toMatchObject({ tier: 'back', app: 'web' });
  expect(after.metadata.annotations).not.toHaveProperty(['prometheus.io/scrape']);
});

test('hashes of different parts differ', () => {
  const seen = new Set<string>();
  for (let i = 0; i < 20_000; i++) {
    seen.add(appliedHash(boundPod({ containers: [{ name: 'a', image: `registry.example/team/app:${i}` }] })));
    seen.add(
      appliedHash(
        boundPod({
          containers: [{ name: 'a', image: `registry.example/team/app@sha256:${i.toString(16).padStart(64, '0')}` }],
        }),
      ),
    );
  }
  expect(seen.size).toBe(40_000);
  for (const mark of seen) expect(mark).toMatch(/^v1:([a-z0-9]{9}\.){4}[a-z0-9]{18}$/);
});
